// SPDX-License-Identifier: Apache-2.0
//
// The tag of a packet: of its header, given, and its payload, which is read from a memory that may
// still be filled.
//
// After start_i, one cycle, the header, the key and payload_bytes_i stay until tag_valid_o, which is 1
// for one cycle, or clear_i, one cycle, which ends it without a tag. word_i is the word of the frame
// word_at_o of two cycles before, of those in which read_o is 1: in others it stays. It is asked for in
// cycles in which there_i says that it can be read; of the head nothing is, but with ReadsHead, for
// WordCycles 4, what the tag is of, in place of header_i. WordCycles a word: 1, 2 or 4 (sw_siphash). soon_o: the tag is there in a few cycles, 8 or a word of 4 and its end.
module sw_tagger
  import sw_protocol_pkg::*;
  import sw_switch_pkg::*;
#(
  parameter int unsigned WordCycles = 1,
  parameter int unsigned ReadsHead = 0
) (
  input  logic         clk_i,
  input  logic         rst_ni,
  input  logic         start_i,
  input  logic         clear_i,
  input  logic [127:0] key_i,
  input  header_t      header_i,
  input  bytes_t       payload_bytes_i,
  output logic         read_o,
  output word_at_t     word_at_o,
  input  logic         there_i,
  input  word_t        word_i,
  output logic         runs_o,  // words are missing
  output logic         soon_o,
  output logic         tag_valid_o,
  output logic [63:0]  tag_o
);

  if (ReadsHead != 0 && WordCycles != 4) begin : g_bad_head
    $error("there is no time to read the head");
  end

  localparam int unsigned TaggedWords = TagWordAt - TaggedWordAt;
  localparam int unsigned TagBits = $bits(header_i.tag);

  logic [TaggedWords-1:0][WordBits-1:0] head;  // the first word highest
  logic [TaggedWords-1:0] head_at_q;  // one bit each
  logic runs_q, read_valid_q, valid_q;  // words are missing; one is being read, and is there
  word_at_t asked_q;
  logic ready, last, in_head, takes;
  word_t word;
  bytes_t rest_q, rest_d, rest;  // of the payload, bytes from this word on
  logic ends_q;            // ... which are all in it
  logic [3:0] bytes_q;     // ... and those that are
  logic in_head_q, is_empty_q;

  assign head = {16'h0, header_i[$bits(header_t)-1:TagBits]};
  assign in_head = in_head_q;
  // The word with the tag itself is left out.
  assign last = in_head ? head_at_q[TaggedWords-1] && is_empty_q : ends_q;
  logic is_there;
  assign is_there = runs_q && !clear_i && ((in_head && ReadsHead == 0) || valid_q);
  assign takes = is_there && ready;

  always_comb begin
    word = word_i;
    if (ReadsHead != 0) begin
      if (in_head && head_at_q[0]) word &= swapped('1 >> 16);  // UDP's checksum is not the tag's
    end else begin
      if (in_head) word = '0;
      for (int unsigned i = 0; i < TaggedWords; ++i) begin
        if (head_at_q[i]) word |= swapped(head[TaggedWords-1-i]);
      end
    end
  end
  // With a word in four cycles there is time to read the next one after this one is taken: what is read
  // never has to wait. It is asked for a cycle later.
  logic steps, asks, takes_rest, goes_on;
  assign steps = takes && (ReadsHead != 0 || !in_head);
  sw_delay_flags #(
    .Width (2),
    .Cycles(WordCycles == 4 ? 1 : 0)
  ) u_asks (
    .clk_i,
    .rst_ni,
    .flags_i({steps, takes && !in_head}),
    .flags_o({asks, takes_rest})
  );
  assign goes_on = WordCycles == 4 ? asks : read_o && there_i;
  word_at_t next_at;
  assign next_at = ReadsHead != 0 && asked_q == word_at_t'(TagWordAt - 1) ? word_at_t'(HeadWords) :
      asked_q + 1'b1;
  assign rest_d = start_i ? payload_bytes_i : rest_q - bytes_t'(WordBytes);
  assign rest = WordCycles == 4 ? rest_q : rest_d;
  assign word_at_o = asked_q;
  assign read_o = WordCycles == 4 || !valid_q || steps;
  assign runs_o = runs_q;

  // With a word a cycle it is soon there when two are missing.
  logic two_missing;
  assign two_missing = in_head ?
      head_at_q[TaggedWords-1] && payload_bytes_i <= bytes_t'(WordBytes) :
      rest_q <= bytes_t'(2 * WordBytes);
  assign soon_o = !runs_q || (WordCycles == 1 && two_missing);

  sw_siphash #(
    .WordCycles(WordCycles)
  ) u_siphash (
    .clk_i,
    .rst_ni,
    .clear_i,
    .key_i,
    .valid_i(is_there),
    .ready_o(ready),
    .word_i (word),
    .bytes_i(in_head ? 4'd8 : bytes_q),
    .last_i (last),
    .tag_valid_o,
    .tag_o
  );

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      {runs_q, read_valid_q, valid_q} <= '0;
    end else if (start_i || clear_i || (takes && last)) begin
      {runs_q, read_valid_q, valid_q} <= {start_i, 2'b0};
    end else if (WordCycles == 4 && (steps || asks)) begin
      {read_valid_q, valid_q} <= '0;
    end else if (read_o) begin
      read_valid_q <= runs_q && there_i;
      valid_q <= read_valid_q;
    end
  end
  always_ff @(posedge clk_i) begin
    if (start_i) begin
      asked_q <= word_at_t'(ReadsHead != 0 ? TaggedWordAt : HeadWords);
      head_at_q <= TaggedWords'(1);
      in_head_q <= 1'b1;
      is_empty_q <= payload_bytes_i == '0;
    end else begin
      if (goes_on) asked_q <= next_at;
      if (takes && in_head) begin
        head_at_q <= head_at_q << 1;
        in_head_q <= !head_at_q[TaggedWords-1];
      end
    end
    if (start_i || takes_rest) rest_q <= rest_d;
    // Of the word that is there, or with four cycles a word of one that is read.
    if (WordCycles == 4 || start_i || steps) begin
      ends_q <= rest <= bytes_t'(WordBytes);
      bytes_q <= rest < bytes_t'(WordBytes) ? rest[3:0] : 4'd8;
    end
  end

  logic unused_tag;
  assign unused_tag = ^header_i.tag;

endmodule
