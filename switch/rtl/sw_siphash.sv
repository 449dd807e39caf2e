// SPDX-License-Identifier: Apache-2.0
//
// SipHash-2-4 (Aumasson, Bernstein 2012) of a stream: the tag of a packet.
//
// Words come as they lie, the first byte lowest, and are taken when valid_i and ready_o are 1. bytes_i
// of them count: 8 of all but the last, 1 to 8 of that; the others are ignored. key_i, the low word
// low, is read with a stream's first word. tag_valid_o is 1 for one cycle, in which tag_o is the tag
// of the stream whose last word was taken before, and the next stream may begin. A word takes
// 2 / RoundsPerCycle cycles, and the tag follows 4 / RoundsPerCycle cycles after the last one, and a
// word later, if that has 8 bytes: the length is in a word of its own then.
module sw_siphash #(
  parameter int unsigned RoundsPerCycle = 1
) (
  input  logic         clk_i,
  input  logic         rst_ni,
  input  logic [127:0] key_i,
  input  logic         valid_i,
  output logic         ready_o,
  input  logic [63:0]  word_i,
  input  logic [3:0]   bytes_i,
  input  logic         last_i,
  output logic         tag_valid_o,
  output logic [63:0]  tag_o
);

  if (RoundsPerCycle != 1 && RoundsPerCycle != 2) begin : g_bad_rounds
    $error("one or two rounds a cycle");
  end

  localparam int unsigned WordCycles = 2 / RoundsPerCycle;
  localparam int unsigned FinalCycles = 4 / RoundsPerCycle;

  typedef struct packed {
    logic [63:0] a;
    logic [63:0] b;
    logic [63:0] c;
    logic [63:0] d;
  } mix_t;

  typedef enum logic [1:0] {
    StWord,    // takes a word
    StSecond,  // its second round
    StLength,  // the word that has the length only
    StFinal
  } state_e;

  function automatic mix_t mixed(mix_t from);
    mix_t to;
    to = from;
    for (int unsigned i = 0; i < RoundsPerCycle; ++i) begin
      to.a = to.a + to.b;
      to.b = {to.b[50:0], to.b[63:51]} ^ to.a;
      to.a = {to.a[31:0], to.a[63:32]};
      to.c = to.c + to.d;
      to.d = {to.d[47:0], to.d[63:48]} ^ to.c;
      to.a = to.a + to.d;
      to.d = {to.d[42:0], to.d[63:43]} ^ to.a;
      to.c = to.c + to.b;
      to.b = {to.b[46:0], to.b[63:47]} ^ to.c;
      to.c = {to.c[31:0], to.c[63:32]};
    end
    return to;
  endfunction

  state_e state_q, state_d;
  mix_t mix_q, mix_d;
  logic first_q, first_d;  // the next word is a stream's first
  logic last_q, last_d;  // the word is the last one, with the length in it
  logic length_due_q, length_due_d;  // ... and it is not
  logic [7:0] length_q, length_d;
  logic [63:0] word_q, word_d;
  logic [1:0] round_q, round_d;
  logic tag_valid_q, tag_valid_d;

  logic [63:0] kept;
  for (genvar i = 0; i < 8; ++i) begin : g_kept
    assign kept[8*i+:8] = bytes_i > 4'(i) ? word_i[8*i+:8] : '0;
  end

  mix_t initial_mix;
  assign initial_mix.a = key_i[63:0] ^ 64'h736f6d6570736575;
  assign initial_mix.b = key_i[127:64] ^ 64'h646f72616e646f6d;
  assign initial_mix.c = key_i[63:0] ^ 64'h6c7967656e657261;
  assign initial_mix.d = key_i[127:64] ^ 64'h7465646279746573;

  // A word goes into the mix before its first round and after its second; the first final round has
  // its constant in front.
  logic begins, ends;
  mix_t mix_in, mix_out;

  always_comb begin
    mix_in = state_q == StWord && first_q ? initial_mix : mix_q;
    if (begins) mix_in.d = mix_in.d ^ word_d;
    if (state_q == StFinal && round_q == '0) mix_in.c = mix_in.c ^ 64'hff;
    mix_out = mixed(mix_in);
    if (ends) mix_out.a = mix_out.a ^ word_d;
  end

  assign ready_o = state_q == StWord;
  assign begins = (state_q == StWord && valid_i) || state_q == StLength;
  assign ends = WordCycles == 1 ? begins : state_q == StSecond;

  always_comb begin
    state_d = state_q;
    first_d = first_q;
    last_d = last_q;
    length_due_d = length_due_q;
    length_d = length_q;
    word_d = word_q;
    round_d = '0;
    tag_valid_d = 1'b0;
    mix_d = begins || state_q inside {StSecond, StFinal} ? mix_out : mix_q;

    if (state_q == StWord && valid_i) begin
      first_d = 1'b0;
      length_d = (first_q ? '0 : length_q) + 8'(bytes_i);
      last_d = last_i && bytes_i != 4'd8;
      length_due_d = last_i && bytes_i == 4'd8;
      word_d = last_d ? {length_d, kept[55:0]} : kept;
    end else if (state_q == StLength) begin
      last_d = 1'b1;
      length_due_d = 1'b0;
      word_d = {length_q, 56'h0};
    end else if (state_q == StFinal) begin
      round_d = round_q + 2'd1;
    end

    if (ends) begin
      state_d = last_d ? StFinal : length_due_d ? StLength : StWord;
    end else if (begins) begin
      state_d = StSecond;
    end else if (state_q == StFinal && round_q == 2'(FinalCycles - 1)) begin
      state_d = StWord;
      first_d = 1'b1;
      tag_valid_d = 1'b1;
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      state_q <= StWord;
      first_q <= 1'b1;
      tag_valid_q <= 1'b0;
      round_q <= '0;
    end else begin
      state_q <= state_d;
      first_q <= first_d;
      tag_valid_q <= tag_valid_d;
      round_q <= round_d;
    end
  end

  always_ff @(posedge clk_i) begin
    mix_q <= mix_d;
    last_q <= last_d;
    length_due_q <= length_due_d;
    length_q <= length_d;
    word_q <= word_d;
  end

  assign tag_valid_o = tag_valid_q;
  assign tag_o = mix_q.a ^ mix_q.b ^ mix_q.c ^ mix_q.d;

endmodule
