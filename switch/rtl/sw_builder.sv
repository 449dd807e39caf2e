// SPDX-License-Identifier: Apache-2.0
//
// Sends a frame: of a head and what follows it in a memory, or as it lies there.
//
// start_i, one cycle, when the one before is done. What is sent stays until done_o, which is 1 in the
// cycle in which the last word is taken, and each word of the head is there a cycle before it is offered;
// the first one is offered two cycles after start_i. word_at_o
// is the word of the frame that word_i is two cycles later, of those in which read_o is 1: in others
// it stays. With raw_i, all of the frame lies there, else what is behind its head. read_o is 1 while
// nothing is sent. m_own_o says which word of the head is
// offered, if it is one that ports change (sw_outlet). The port is an AXI4-Stream
// as sw_parser's is: what is offered stays until it is taken.
//
// With FastClock a word takes four cycles, and read_o is always 1: word_at_o stays until the word is taken,
// and word_i may come three cycles after it.
module sw_builder
  import sw_switch_pkg::*;
#(
  parameter int unsigned FastClock = 0
) (
  input  logic                 clk_i,
  input  logic                 rst_ni,
  input  logic                 start_i,
  input  logic                 raw_i,
  input  head_t                head_i,
  input  bytes_t               bytes_i,
  output logic                 read_o,
  output word_at_t             word_at_o,
  input  word_t                word_i,
  output logic                 m_valid_o,
  input  logic                 m_ready_i,
  output own_e                 m_own_o,
  output word_t                m_data_o,
  output logic [WordBytes-1:0] m_keep_o,
  output logic                 m_last_o,
  output logic                 done_o
);

  word_t [HeadWords-1:0] head;  // the first word highest
  word_at_t asked_q, read_q;  // words: asked for, being read
  logic [HeadWords-1:0] is_head_q;  // read_q, one bit each
  own_e own, own_q;
  logic runs_q, read_valid_q, valid_q;
  bytes_t rest;  // bytes from the word on that is being read

  // Of the word that is offered.
  word_t head_word, head_word_q;
  logic in_head_q, last_q;
  logic [WordBytes-1:0] keep, keep_q;

  assign head = head_i;
  assign rest = bytes_i - bytes_t'({read_q, 3'b0});
  logic steps;  // what is asked for is read, and what is read is offered
  if (FastClock != 0) begin : g_slowly
    word_at_t at_q;  // of what is offered
    logic [2:0] there_q;
    always_ff @(posedge clk_i or negedge rst_ni) begin
      if (!rst_ni) begin
        there_q <= '0;
      end else begin
        there_q <= steps ? '0 : {there_q[1:0], valid_q};
      end
    end
    always_ff @(posedge clk_i) if (steps) at_q <= read_q;
    assign word_at_o = at_q;
    assign read_o = 1'b1;
    assign m_valid_o = there_q[2];
    assign steps = !valid_q || (there_q[2] && m_ready_i);
  end else begin : g_a_word_a_cycle
    assign word_at_o = asked_q;
    assign read_o = steps;
    assign m_valid_o = valid_q;
    assign steps = !valid_q || m_ready_i;
  end

  assign m_own_o = own_q;
  assign m_data_o = in_head_q ? head_word_q : word_i;
  assign m_keep_o = keep_q;
  assign m_last_o = last_q;
  assign done_o = m_valid_o && m_ready_i && m_last_o;

  always_comb begin
    head_word = '0;
    for (int unsigned i = 0; i < HeadWords; ++i) begin
      if (is_head_q[i]) head_word |= swapped(head[HeadWords-1-i]);
    end
    for (int unsigned i = 0; i < WordBytes; ++i) keep[i] = rest > bytes_t'(i);
    own = OwnNothing;
    if (!raw_i) begin
      if (is_head_q[0]) own = OwnMac;
      if (is_head_q[3]) own = OwnChecksum;
      if (is_head_q[4]) own = OwnIpAndPort;
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      runs_q <= 1'b0;
      read_valid_q <= 1'b0;
      valid_q <= 1'b0;
      asked_q <= '0;
    end else if (done_o) begin
      runs_q <= 1'b0;
      read_valid_q <= 1'b0;
      valid_q <= 1'b0;
      asked_q <= '0;
    end else if (steps && (start_i || runs_q)) begin
      runs_q <= 1'b1;
      read_valid_q <= 1'b1;
      valid_q <= read_valid_q;
      asked_q <= asked_q + 1'b1;
    end
  end

  always_ff @(posedge clk_i) begin
    if (steps) begin
      read_q <= asked_q;
      for (int unsigned i = 0; i < HeadWords; ++i) is_head_q[i] <= asked_q == word_at_t'(i);
      own_q <= own;
      head_word_q <= head_word;
      in_head_q <= !raw_i && is_head_q != '0;
      keep_q <= keep;
      last_q <= rest <= bytes_t'(WordBytes);
    end
  end

  offered_stays :
  assert property (@(posedge clk_i) disable iff (!rst_ni) m_valid_o && !m_ready_i |=>
      m_valid_o && $stable(m_data_o) && $stable(m_keep_o) && $stable(m_last_o));

endmodule
