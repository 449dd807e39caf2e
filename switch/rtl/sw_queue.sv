// SPDX-License-Identifier: Apache-2.0
//
// Words of frames that wait at a port, in order, of any number of frames; with WholeFrames they go on
// from when the frame is there to its end. A frame is taken if there is
// room for a longest one, of LongestFrame bytes; the next waits until there is, but only for patience_i
// cycles (sw_patience). Of a frame that is longer so many words are kept that it is still too long.
//
// Both ends are AXI4-Streams as sw_parser's.
module sw_queue
  import sw_switch_pkg::*;
#(
  parameter int unsigned Words = 512,
  parameter int unsigned LongestFrame = 1518,
  parameter int unsigned WholeFrames = 0,
  parameter int unsigned FastClock = 0
) (
  input  logic                 clk_i,
  input  logic                 rst_ni,
  input  logic [15:0]          patience_i,
  input  logic                 s_valid_i,
  output logic                 s_ready_o,
  input  word_t                s_data_i,
  input  logic [WordBytes-1:0] s_keep_i,
  input  logic                 s_last_i,
  output logic                 overrun_o,
  output logic                 m_valid_o,
  input  logic                 m_ready_i,
  output word_t                m_data_o,
  output logic [WordBytes-1:0] m_keep_o,
  output logic                 m_last_o
);

  localparam int unsigned AtBits = $clog2(Words);
  localparam int unsigned TooManyWords = (LongestFrame + WordBytes - 1) / WordBytes + 1;
  // Of a frame, and those that come before has_room_q knows of them.
  localparam int unsigned RoomWords = TooManyWords + 4;

  if (Words < RoomWords || (1 << AtBits) != Words) begin : g_bad_words
    $error("a queue has room for a frame, and a number of words that is a power of two");
  end

  typedef struct packed {
    logic       last;
    logic [2:0] rest;  // bytes behind the first one
    word_t      data;
  } entry_t;

  entry_t queue[Words], entry, read_q, out_q;
  logic [AtBits-1:0] in_q, out_at_q;
  logic [AtBits:0] count_q, part_q, whole_q;  // words; of the frame that comes, and of those before
  word_at_t at_q;  // the next word of the frame that comes
  logic comes_q, has_room_q, drops, takes, writes, reads, moves, read_valid_q, valid_q;

  sw_patience u_patience (
    .clk_i,
    .rst_ni,
    .patience_i,
    .waits_i  (s_valid_i && !comes_q && !has_room_q),
    .s_valid_i,
    .s_last_i,
    .drops_o  (drops),
    .overrun_o
  );

  assign s_ready_o = comes_q || has_room_q || drops;
  assign takes = s_valid_i && s_ready_o && !drops;
  assign writes = takes && (at_q != word_at_t'(TooManyWords) || s_last_i);
  assign moves = !valid_q || m_ready_i;

  // Whether a word may be read; with FastClock it says so a cycle late, but of the last one at once.
  logic may_read;
  logic [AtBits:0] readable;
  assign readable = WholeFrames != 0 ? whole_q : count_q;
  if (FastClock != 0) begin : g_later
    always_ff @(posedge clk_i or negedge rst_ni) begin
      if (!rst_ni) begin
        may_read <= 1'b0;
      end else begin
        may_read <= reads ? readable[AtBits:1] != '0 : readable != '0;
      end
    end
  end else begin : g_now
    assign may_read = readable != '0;
  end
  assign reads = moves && may_read;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      in_q <= '0;
      out_at_q <= '0;
      {count_q, part_q, whole_q} <= '0;
      at_q <= '0;
      {comes_q, has_room_q, read_valid_q, valid_q} <= '0;
    end else begin
      in_q <= in_q + AtBits'(writes);
      out_at_q <= out_at_q + AtBits'(reads);
      count_q <= count_q + (AtBits + 1)'(writes) - (AtBits + 1)'(reads);
      if (writes) part_q <= s_last_i ? '0 : part_q + 1'b1;
      whole_q <= whole_q + (writes && s_last_i ? part_q + 1'b1 : '0) - (AtBits + 1)'(reads);
      if (takes) begin
        at_q <= s_last_i ? '0 : at_q == word_at_t'(TooManyWords) ? at_q : at_q + 1'b1;
        comes_q <= !s_last_i;
      end
      has_room_q <= count_q <= (AtBits + 1)'(Words - RoomWords);
      if (moves) {valid_q, read_valid_q} <= {read_valid_q, reads};
    end
  end

  always_comb begin
    entry.last = s_last_i;
    entry.rest = '0;
    entry.data = s_data_i;
    for (int unsigned i = 1; i < WordBytes; ++i) if (s_keep_i[i]) entry.rest = 3'(i);
    for (int unsigned i = 0; i < WordBytes; ++i) m_keep_o[i] = out_q.rest >= 3'(i);
  end
  always_ff @(posedge clk_i) begin
    if (writes) queue[in_q] <= entry;
    if (moves) begin
      read_q <= queue[out_at_q];
      out_q <= read_q;
    end
  end
  assign m_valid_o = valid_q;
  assign m_data_o = out_q.data;
  assign m_last_o = out_q.last;

  logic unused_keep;
  assign unused_keep = s_keep_i[0];

  reads_what_is_there :
  assert property (@(posedge clk_i) disable iff (!rst_ni) reads |-> readable != '0);
  there_is_room :
  assert property (@(posedge clk_i) disable iff (!rst_ni) writes |-> 32'(count_q) < Words);

endmodule
