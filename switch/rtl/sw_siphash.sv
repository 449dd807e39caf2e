// SPDX-License-Identifier: Apache-2.0
//
// SipHash-2-4 (Aumasson, Bernstein 2012) of a stream: the tag of a packet.
//
// Words come as they lie, the first byte lowest, and are taken when valid_i and ready_o are 1. bytes_i
// of them count: 8 of all but the last, 1 to 8 of that; the others are ignored. key_i, the low word
// low, is read with a stream's first word. tag_valid_o is 1 for one cycle, in which tag_o is the tag
// of the stream whose last word was taken before, and the next stream may begin. A word takes
// WordCycles cycles for its two rounds: 1, 2, or 4, with half a round a cycle, for the fastest clock.
// The tag follows 3 * WordCycles + 1 cycles after the last word is taken, and a word later, if that
// has 8 bytes: the length is in a word of its own then. With WordCycles 4, where a word waits until the
// one before is in, it is one cycle more. clear_i, one cycle, in which no word is taken,
// ends a stream without a tag; the next may begin a cycle later.
module sw_siphash #(
  parameter int unsigned WordCycles = 2
) (
  input  logic         clk_i,
  input  logic         rst_ni,
  input  logic         clear_i,
  input  logic [127:0] key_i,
  input  logic         valid_i,
  output logic         ready_o,
  input  logic [63:0]  word_i,
  input  logic [3:0]   bytes_i,
  input  logic         last_i,
  output logic         tag_valid_o,
  output logic [63:0]  tag_o
);

  if (WordCycles != 1 && WordCycles != 2 && WordCycles != 4) begin : g_bad_cycles
    $error("a word takes 1, 2 or 4 cycles");
  end

  localparam int unsigned HalvesPerCycle = 4 / WordCycles;
  localparam int unsigned FinalCycles = 2 * WordCycles;

  // The paper's a and c, and what is added to them next: b and d before the first half of a round,
  // and d and b before the second.
  typedef struct packed {
    logic [63:0] a;
    logic [63:0] to_a;
    logic [63:0] c;
    logic [63:0] to_c;
  } mix_t;

  typedef enum logic [1:0] {
    StIdle,
    StMix,   // the word
    StFinal
  } state_e;

  function automatic mix_t half_mixed(mix_t from, logic second);
    mix_t to;
    logic [63:0] a, c;
    a = from.a + from.to_a;
    c = from.c + from.to_c;
    to.a = second ? a : {a[31:0], a[63:32]};
    to.c = second ? {c[31:0], c[63:32]} : c;
    to.to_c = a ^ (second ? {from.to_a[42:0], from.to_a[63:43]}
                          : {from.to_a[50:0], from.to_a[63:51]});
    to.to_a = c ^ (second ? {from.to_c[46:0], from.to_c[63:47]}
                          : {from.to_c[47:0], from.to_c[63:48]});
    return to;
  endfunction

  // The word that comes next.
  typedef struct packed {
    logic [63:0] word;
    logic [7:0]  counts;  // its bytes, one bit each
    logic [3:0]  bytes;   // ... and how many
    logic        last;
  } entry_t;

  state_e state_q, state_d;
  entry_t entry, next;
  logic next_valid, next_ready, begins_anew;
  logic [2:0] cycle_q, cycle_d;  // of the word, or of the end
  mix_t mix_q, mix_d;
  logic first_q, first_d;            // the next word is a stream's first
  logic last_q, last_d;              // the word is the last one, with the length in it
  logic length_due_q, length_due_d;  // ... and it is not
  logic [7:0] length_q, length_d;
  logic [63:0] word_q, word_d;
  logic tag_valid_q, tag_valid_d;

  logic [7:0] counts;
  logic [63:0] kept;  // of the next word: bytes that do not count are 0
  for (genvar i = 0; i < 8; ++i) begin : g_kept
    assign counts[i] = bytes_i > 4'(i);
    assign kept[8*i+:8] = next.counts[i] ? next.word[8*i+:8] : '0;
  end
  assign entry = '{word: word_i, counts: counts, bytes: bytes_i, last: last_i};

  if (WordCycles == 4) begin : g_waits
    entry_t entry_q;
    logic entry_valid_q, over_q;  // over: of this stream no word is missing
    assign ready_o = !entry_valid_q && !over_q;
    assign next = entry_q;
    assign next_valid = entry_valid_q;
    assign begins_anew = first_q && !entry_valid_q;
    always_ff @(posedge clk_i or negedge rst_ni) begin
      if (!rst_ni) begin
        {entry_valid_q, over_q} <= '0;
      end else begin
        entry_valid_q <= (entry_valid_q ? !next_ready : valid_i && ready_o) && !clear_i;
        over_q <= ((valid_i && ready_o && last_i) || over_q) && !clear_i && !tag_valid_d;
      end
    end
    always_ff @(posedge clk_i) if (!entry_valid_q) entry_q <= entry;
  end else begin : g_goes_on
    assign ready_o = next_ready;
    assign next = entry;
    assign next_valid = valid_i;
    assign begins_anew = first_q;
  end

  mix_t initial_mix;
  assign initial_mix.a = key_i[63:0] ^ 64'h736f6d6570736575;
  assign initial_mix.to_a = key_i[127:64] ^ 64'h646f72616e646f6d;
  assign initial_mix.c = key_i[63:0] ^ 64'h6c7967656e657261;
  assign initial_mix.to_c = key_i[127:64] ^ 64'h7465646279746573;

  // A word is over with its last cycle; in that, or if there is none, the next may come.
  logic at_end_q, is_over, next_may_come, takes;
  assign is_over = state_q == StMix && at_end_q;
  assign next_may_come = is_over || state_q == StIdle;
  assign next_ready = state_q == StIdle || (is_over && !last_q && !length_due_q);
  assign takes = next_valid && next_ready;

  // The same for what is wide: a cycle is before a word's first round, after its last, and before the first
  // one of the end.
  logic begins, ends, finishes;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      {begins, ends, finishes} <= '0;
    end else begin
      begins <= state_d == StMix && next_may_come;
      ends <= state_d == StMix && cycle_d == 3'(WordCycles - 1);
      finishes <= is_over && last_q;
    end
  end

  // A word goes into the mix before its first round and after its second; the first final round has
  // its constant in front. With half a round a cycle there are registers between the halves, which are
  // not the same: every other cycle the mix is in these, and what comes of the other ones is nothing.
  mix_t with_word, mixed, rounded;
  always_comb begin
    with_word = mix_q;
    if (begins) with_word.to_c = mix_q.to_c ^ word_q;
    if (finishes) with_word.c = mix_q.c ^ 64'hff;
  end
  if (HalvesPerCycle == 1) begin : g_halves
    mix_t half_q;
    always_ff @(posedge clk_i) half_q <= half_mixed(with_word, 1'b0);
    assign rounded = half_mixed(half_q, 1'b1);
  end else begin : g_rounds
    always_comb begin
      rounded = with_word;
      for (int unsigned i = 0; i < HalvesPerCycle; ++i) rounded = half_mixed(rounded, i % 2 == 1);
    end
  end
  always_comb begin
    mixed = rounded;
    if (ends) mixed.a = rounded.a ^ word_q;
  end

  assign cycle_d = next_may_come ? '0 : cycle_q + 3'd1;
  always_comb begin
    state_d = state_q;
    first_d = first_q;
    last_d = last_q;
    length_due_d = length_due_q;
    tag_valid_d = 1'b0;
    mix_d = mixed;
    // Whether a word comes or not: none is in the mix yet.
    if (state_q == StIdle) mix_d = begins_anew ? initial_mix : mix_q;

    if (is_over) begin
      state_d = last_q ? StFinal : length_due_q ? StMix : StIdle;
      last_d = 1'b1;
      length_due_d = 1'b0;
    end else if (state_q == StFinal && cycle_q == 3'(FinalCycles - 1)) begin
      state_d = StIdle;
      first_d = 1'b1;
      tag_valid_d = 1'b1;
    end
    if (takes) begin
      state_d = StMix;
      first_d = 1'b0;
      last_d = next.last && next.bytes != 4'd8;
      length_due_d = next.last && next.bytes == 4'd8;
    end
    if (clear_i) begin
      state_d = StIdle;
      first_d = 1'b1;
      tag_valid_d = 1'b0;
    end
  end

  // If no word is taken then, what is there is never mixed.
  always_comb begin
    length_d = (first_q ? '0 : length_q) + 8'(next.bytes);
    word_d = next.last && next.bytes != 4'd8 ? {length_d, kept[55:0]} : kept;
    if (is_over && length_due_q) word_d = {length_q, 56'h0};
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      state_q <= StIdle;
      first_q <= 1'b1;
      tag_valid_q <= 1'b0;
    end else begin
      state_q <= state_d;
      first_q <= first_d;
      tag_valid_q <= tag_valid_d;
    end
  end

  always_ff @(posedge clk_i) begin
    cycle_q <= cycle_d;
    mix_q <= mix_d;
    last_q <= last_d;
    length_due_q <= length_due_d;
    if (takes) length_q <= length_d;
    if (next_may_come) word_q <= word_d;
    at_end_q <= cycle_d == 3'(WordCycles - 1);
  end

  assign tag_valid_o = tag_valid_q;
  // In any order: to_a and to_c have changed places four times or eight.
  assign tag_o = mix_q.a ^ mix_q.to_a ^ mix_q.c ^ mix_q.to_c;

endmodule
