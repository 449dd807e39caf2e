// SPDX-License-Identifier: Apache-2.0
//
// The tag of a packet: of its header, given, and its payload, which is read from a memory.
//
// After start_i, one cycle, the header, the key and payload_bytes_i stay until tag_valid_o, which is 1
// for one cycle. word_at_o is the word of the frame that word_i is two cycles later; of the head
// nothing is read. WordCycles a word: two, or four, for a faster clock (sw_siphash).
module sw_tagger
  import sw_protocol_pkg::*;
  import sw_switch_pkg::*;
#(
  parameter int unsigned WordCycles = 2
) (
  input  logic         clk_i,
  input  logic         rst_ni,
  input  logic         start_i,
  input  logic [127:0] key_i,
  input  header_t      header_i,
  input  bytes_t       payload_bytes_i,
  output word_at_t     word_at_o,
  input  word_t        word_i,
  output logic         runs_o,  // words are missing
  output logic         tag_valid_o,
  output logic [63:0]  tag_o
);

  if (WordCycles < 2) begin : g_too_fast
    $error("a word is there after two cycles");
  end

  localparam int unsigned TaggedWords = TagWordAt - TaggedWordAt;
  localparam int unsigned TagBits = $bits(header_i.tag);

  logic [TaggedWords-1:0][WordBits-1:0] head;  // the first word highest
  word_at_t at_q, at_d;
  logic runs_q, ready, last, in_head;
  word_t word;
  bytes_t rest_q;  // of the payload, bytes from this word on

  assign head = {16'h0, header_i[$bits(header_t)-1:TagBits]};
  assign in_head = at_q < word_at_t'(TagWordAt);
  // The word with the tag itself is left out.
  assign last = in_head ? at_q == word_at_t'(TagWordAt - 1) && payload_bytes_i == '0 :
      rest_q <= bytes_t'(WordBytes);

  always_comb begin
    word = word_i;
    for (int unsigned i = 0; i < TaggedWords; ++i) begin
      if (at_q == word_at_t'(TaggedWordAt + i)) word = swapped(head[TaggedWords-1-i]);
    end
    at_d = at_q;
    if (start_i) begin
      at_d = word_at_t'(TaggedWordAt);
    end else if (runs_q && ready) begin
      at_d = at_q == word_at_t'(TagWordAt - 1) ? word_at_t'(TagWordAt + 1) : at_q + 1'b1;
    end
  end
  assign word_at_o = at_d;
  assign runs_o = runs_q;

  sw_siphash #(
    .WordCycles(WordCycles)
  ) u_siphash (
    .clk_i,
    .rst_ni,
    .key_i,
    .valid_i(runs_q),
    .ready_o(ready),
    .word_i (word),
    .bytes_i(!in_head && rest_q < bytes_t'(WordBytes) ? rest_q[3:0] : 4'd8),
    .last_i (last),
    .tag_valid_o,
    .tag_o
  );

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      runs_q <= 1'b0;
    end else if (start_i) begin
      runs_q <= 1'b1;
    end else if (ready && last) begin
      runs_q <= 1'b0;
    end
  end
  always_ff @(posedge clk_i) begin
    at_q <= at_d;
    if (start_i) begin
      rest_q <= payload_bytes_i;
    end else if (runs_q && ready && !in_head) begin
      rest_q <= rest_q - bytes_t'(WordBytes);
    end
  end

  logic unused_tag;
  assign unused_tag = ^header_i.tag;

endmodule
