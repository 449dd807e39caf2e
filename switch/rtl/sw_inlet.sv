// SPDX-License-Identifier: Apache-2.0
//
// What comes in at a port, or at several (sw_gather): Frames frames, one after the other (sw_parser), each
// checked as it comes (sw_check). The reader has the first of them; behind it others come in, and are
// checked. from_o is the port that the reader's came to, as s_from_i had it with its last word.
//
// soon_o and checked_o, authentic_o, packet_o are of the reader's frame (sw_check), until done_i, one
// cycle, or until it is stored: after store_i, one cycle, word_o are the words of the packet's
// operand, one a cycle in which writes_o is 1, number write_at_o, to the last one, in which last_o is
// 1; they begin in the next cycle, or with FastClock in the one after that. Else the reader reads what it
// likes: while reads_i is 1, word_o is the word word_at_i of two cycles before, of those in which read_i is
// 1. again_i: all are checked again.
module sw_inlet
  import sw_switch_pkg::*;
#(
  parameter int unsigned Frames = 3,
  parameter int unsigned LongestFrame = FrameBytes,
  parameter int unsigned Jobs = 4,
  parameter int unsigned TagWordCycles = 1,
  parameter int unsigned FastClock = 0
) (
  input  logic                  clk_i,
  input  logic                  rst_ni,
  input  logic [47:0]           own_mac_i,
  input  logic [31:0]           own_ip_i,
  input  logic [15:0]           own_udp_port_i,
  input  logic                  s_valid_i,
  output logic                  s_ready_o,
  input  word_t                 s_data_i,
  input  logic [WordBytes-1:0]  s_keep_i,
  input  logic                  s_last_i,
  input  logic [7:0]            s_from_i,
  input  logic [15:0]           patience_i,
  output logic                  overrun_o,
  input  job_entry_t [Jobs-1:0] jobs_i,
  input  logic                  again_i,
  output logic                  soon_o,
  output logic                  checked_o,
  output logic                  authentic_o,
  output packet_t               packet_o,
  output logic [7:0]            from_o,
  input  logic                  done_i,
  input  logic                  store_i,
  output logic                  writes_o,
  output logic                  last_o,
  output word_at_t              write_at_o,
  input  logic                  reads_i,
  input  logic                  read_i,
  input  word_at_t              word_at_i,
  output word_t                 word_o
);

  localparam int unsigned AtBits = Frames > 1 ? $clog2(Frames) : 1;
  typedef logic [AtBits-1:0] at_t;

  function automatic at_t next_of(at_t at);
    return at == at_t'(Frames - 1) ? '0 : at + 1'b1;
  endfunction

  // The frame that comes, the one that is checked, and the reader's.
  at_t in_q, check_q, out_q;
  logic [Frames-1:0] ready, overruns, valid, likely, settled, checked_q, authentic_q;
  packet_t [Frames-1:0] packets;
  logic [Frames-1:0][7:0] from_q;
  word_at_t [Frames-1:0] received;
  word_t [Frames-1:0] words;
  logic done, checks_read, checks, is_authentic, soon;
  word_at_t checks_at;

  // The operand's first words wait to be stored.
  logic stores_q, begins, read_valid_q, valid_q, store_read, store_steps;
  word_at_t store_at_q, write_at, write_at_q, last_at_q;
  logic is_last_q;

  for (genvar i = 0; i < Frames; ++i) begin : g_frame
    logic is_out;
    assign is_out = checked_q[i];

    sw_parser #(
      .LongestFrame(LongestFrame),
      .FastClock(FastClock)
    ) u_parser (
      .clk_i,
      .rst_ni,
      .own_mac_i,
      .own_ip_i,
      .own_udp_port_i,
      .s_valid_i     (s_valid_i && in_q == at_t'(i)),
      .s_ready_o     (ready[i]),
      .s_data_i,
      .s_keep_i,
      .s_last_i,
      .packet_valid_o(valid[i]),
      .packet_o      (packets[i]),
      .likely_o      (likely[i]),
      .received_o    (received[i]),
      .settled_o     (settled[i]),
      .done_i        (done && out_q == at_t'(i)),
      .read_i        (!is_out ? checks_read : reads_i ? read_i : store_read),
      .word_at_i     (!is_out ? checks_at : reads_i ? word_at_i : store_at_q),
      .word_o        (words[i]),
      .patience_i,
      .overrun_o     (overruns[i])
    );
  end

  assign s_ready_o = ready[in_q];
  assign overrun_o = overruns[in_q];
  assign packet_o = packets[out_q];
  assign from_o = from_q[out_q];
  assign word_o = words[out_q];
  assign checked_o = checked_q[out_q];
  assign authentic_o = authentic_q[out_q];
  assign soon_o = checked_o || (soon && check_q == out_q);

  sw_check #(
    .Jobs(Jobs),
    .TagWordCycles(TagWordCycles),
    .FastClock(FastClock)
  ) u_check (
    .clk_i,
    .rst_ni,
    .jobs_i,
    .again_i,
    .packet_valid_i(valid[check_q] && !checked_q[check_q]),
    .packet_i      (packets[check_q]),
    .likely_i      (likely[check_q]),
    .settled_i     (settled[check_q]),
    .read_o        (checks_read),
    .word_at_o     (checks_at),
    .there_i       (checks_at < received[check_q]),
    .word_i        (words[check_q]),
    .soon_o        (soon),
    .checked_o     (checks),
    .authentic_o   (is_authentic)
  );

  assign done = done_i || (writes_o && last_o);

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      in_q <= '0;
      check_q <= '0;
      out_q <= '0;
      checked_q <= '0;
    end else begin
      if (s_valid_i && s_ready_o && s_last_i && !overrun_o) in_q <= next_of(in_q);
      if (done) out_q <= next_of(out_q);
      if (again_i) begin
        check_q <= out_q;
        checked_q <= '0;
      end else begin
        if (checks) begin
          check_q <= next_of(check_q);
          checked_q[check_q] <= 1'b1;
        end
        if (done) checked_q[out_q] <= 1'b0;
      end
    end
  end
  always_ff @(posedge clk_i) begin
    if (!checked_q[check_q]) authentic_q[check_q] <= is_authentic;  // what it is when that is known stays
    if (s_valid_i && s_ready_o && s_last_i && !overrun_o) from_q[in_q] <= s_from_i;
  end

  assign writes_o = stores_q;
  assign write_at_o = write_at_q;
  assign last_o = is_last_q;
  assign write_at = stores_q ? write_at_q + 1'b1 : '0;
  // With FastClock what is read goes on all the time: the first word is read until it is stored.
  sw_delay_flags #(
    .Width (1),
    .Cycles(FastClock)
  ) u_begins (
    .clk_i,
    .rst_ni,
    .flags_i(store_i),
    .flags_o(begins)
  );
  assign store_read = FastClock != 0 || !valid_q || stores_q;
  assign store_steps = FastClock != 0 ? store_i || begins || stores_q : store_read;

  // Of one frame alone, the next is not checked in the cycle after this one's end.
  logic ends;
  assign ends = !checked_o || (Frames > 1 && done);

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      {stores_q, read_valid_q, valid_q} <= '0;
    end else begin
      stores_q <= begins || (stores_q && !last_o);
      if (ends) begin
        {read_valid_q, valid_q} <= '0;
      end else if (store_read) begin
        {read_valid_q, valid_q} <= {1'b1, read_valid_q};
      end
    end
  end
  always_ff @(posedge clk_i) begin
    if (ends) begin
      store_at_q <= word_at_t'(HeadWords);
    end else if (store_steps) begin
      store_at_q <= store_at_q + 1'b1;
    end
    last_at_q <= words_of(packet_o.bytes - bytes_t'(HeadBytes)) - 1'b1;
    write_at_q <= write_at;
    is_last_q <= write_at == last_at_q;
  end

  done_with_what_is_checked :
  assert property (@(posedge clk_i) disable iff (!rst_ni) done |-> checked_o && !again_i);
  last_word_is_the_last :
  assert property (@(posedge clk_i) disable iff (!rst_ni) stores_q |-> is_last_q == (write_at_q == last_at_q));
  stored_from_the_first_word_on :
  assert property (@(posedge clk_i) disable iff (!rst_ni) stores_q |-> valid_q && !reads_i);

endmodule
