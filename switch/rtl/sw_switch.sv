// SPDX-License-Identifier: Apache-2.0
//
// A switch: frames in at ports, frames out at ports, each an AXI4-Stream of beats of DataBits, 8 to 256 and a
// power of two, whose keep is as sw_parser's. Packets of the protocol are reduced, and what is for others
// goes on untouched.
//
// Behind the ports are words of 64 bits, one a cycle of each port (sw_width): narrower beats come one a
// cycle, too, and of wider ones each takes as many cycles as it has words. So a wider port fits a wider bus, and is
// not faster.
//
// Each port has an inlet, which keeps Frames frames, and checks them as they come (sw_inlet); whole ones
// are begun one at a time, in turn over the inlets, and contributions that say the same of other children
// together with the one whose turn it is. Of a port whose next frame is begun, taken_o is 1 for one cycle:
// what the switch does, and counts, is as if one came after the other, those of one cycle in the order of
// the ports. All that they make the switch send leaves before what later ones do. No port's input waits for
// another's, but with a full queue for those of the same inlet.
//
// With QueueWords each port has a queue (sw_queue) before that, and there may be fewer Inlets than ports:
// then each has the frames of several queues in turn (sw_gather), and none is begun together with others.
//
// Outputs wait until what is sent is taken, and with them the engine: who is on the other side must
// take each frame some time, whatever it does with it. Inputs are of that kind themselves: one that
// has no room pauses its sender for patience_i cycles, and then drops its frame (sw_parser), which
// the protocol makes good. So switches may be connected with each other in any way. With a patience
// without end (all ones) an input waits for the engine, and two switches with links between them for
// each other for ever: only senders that never wait for this switch may have that.
//
// A record is taken when control_valid_i and control_ready_o are 1, and stays until then; with FastClock
// control_ready_o is 0 while none is offered.
//
// A port leads to the processor beside the switch, which loads the tables (sw_lookup), and gets what
// is for the switch, and is no contribution, result or refusal.
module sw_switch
  import sw_protocol_pkg::*;
  import sw_switch_pkg::*;
#(
  parameter  int unsigned Ports = 18,
  parameter  int unsigned DataBits = WordBits,
  parameter  int unsigned Inlets = Ports,
  parameter  int unsigned Children = 16,
  parameter  int unsigned Jobs = 4,
  parameter  int unsigned Groups = 4,
  parameter  int unsigned ForwardEntries = 32,
  parameter  int unsigned Window = 16,
  parameter  int unsigned OperandBytes = BurstOperandBytes,
  parameter  int unsigned TagWordCycles = 1,
  parameter  int unsigned Frames = 3,
  parameter  int unsigned QueueWords = 0,
  parameter  int unsigned LongestFrame = FrameBytes,
  parameter  int unsigned BeatCycles = 1,
  parameter  int unsigned FastClock = 0,
  localparam int unsigned DataBytes = DataBits / 8
) (
  input  logic                            clk_i,
  input  logic                            rst_ni,
  input  logic [47:0]                     own_mac_i,
  input  logic [31:0]                     own_ip_i,
  input  logic [15:0]                     own_udp_port_i,
  input  logic [7:0]                      control_port_i,
  input  logic [15:0]                     patience_i,
  input  logic                            control_valid_i,
  output logic                            control_ready_o,
  input  logic [2:0]                      control_table_i,
  input  logic [15:0]                     control_index_i,
  input  logic [RecordBits-1:0]           control_record_i,
  input  logic [Ports-1:0]                s_valid_i,
  output logic [Ports-1:0]                s_ready_o,
  input  logic [Ports-1:0][DataBits-1:0]  s_data_i,
  input  logic [Ports-1:0][DataBytes-1:0] s_keep_i,
  input  logic [Ports-1:0]                s_last_i,
  output logic [Ports-1:0]                m_valid_o,
  input  logic [Ports-1:0]                m_ready_i,
  output logic [Ports-1:0][DataBits-1:0]  m_data_o,
  output logic [Ports-1:0][DataBytes-1:0] m_keep_o,
  output logic [Ports-1:0]                m_last_o,
  output logic [Ports-1:0]                taken_o,
  output logic [Groups-1:0]               touched_o,
  output logic [Counters-1:0][63:0]       counters_o
);

  if (Children < 2 || Children > MaxChildren || Ports > MaxPorts || Ports < 2) begin : g_bad_ports
    $error("children are 2 to 64, and ports 2 to 66");
  end
  if (DataBits < 8 || DataBits > 256 || (DataBits & (DataBits - 1)) != 0) begin : g_bad_data
    $error("a port's beats have 8 to 256 bits, a power of two");
  end
  if (Jobs < 2 || Groups < 2 || ForwardEntries < 2) begin : g_bad_tables
    $error("tables have two entries at least");
  end
  if (OperandBytes % 8 != 0 || OperandBytes > MaxOperandBytes) begin : g_bad_operand
    $error("operands are whole words of 64 bits, 8,192 bytes at most");
  end
  if (Frames < 1 || (Frames == 1 && QueueWords == 0)) begin : g_bad_frames
    $error("a frame comes in while another one is worked off");
  end
  if (Inlets < 1 || Inlets > Ports || (Inlets < Ports && QueueWords == 0)) begin : g_bad_inlets
    $error("each port has an inlet, or a queue and part of an inlet");
  end
  if ($clog2(Groups) + $clog2(2 * Window) > 16) begin : g_bad_window
    $error("there are 65,536 slots at most: two windows for each group");
  end
  if (FastClock > 1) begin : g_bad_clock
    $error("FastClock is 0 or 1");
  end
  if (LongestFrame < HeadBytes + OperandBytes || LongestFrame > FrameBytes) begin : g_bad_longest
    $error("the longest frame has room for an operand");
  end

  // Words at each port, that came and that are sent.
  logic [Ports-1:0] in_valid, in_ready, in_last, out_valid, out_ready;
  word_t [Ports-1:0] in_data, out_data;
  logic [Ports-1:0][WordBytes-1:0] in_keep;
  logic [WordBytes-1:0] out_keep;  // and last: of all ports whose valid is 1
  logic out_last;

  for (genvar port = 0; port < Ports; ++port) begin : g_width
    sw_width #(
      .FromBits(DataBits),
      .ToBits(WordBits)
    ) u_in (
      .clk_i,
      .rst_ni,
      .s_valid_i(s_valid_i[port]),
      .s_ready_o(s_ready_o[port]),
      .s_data_i (s_data_i[port]),
      .s_keep_i (s_keep_i[port]),
      .s_last_i (s_last_i[port]),
      .m_valid_o(in_valid[port]),
      .m_ready_i(in_ready[port]),
      .m_data_o (in_data[port]),
      .m_keep_o (in_keep[port]),
      .m_last_o (in_last[port])
    );
    sw_width #(
      .FromBits(WordBits),
      .ToBits(DataBits)
    ) u_out (
      .clk_i,
      .rst_ni,
      .s_valid_i(out_valid[port]),
      .s_ready_o(out_ready[port]),
      .s_data_i (out_data[port]),
      .s_keep_i (out_keep),
      .s_last_i (out_last),
      .m_valid_o(m_valid_o[port]),
      .m_ready_i(m_ready_i[port]),
      .m_data_o (m_data_o[port]),
      .m_keep_o (m_keep_o[port]),
      .m_last_o (m_last_o[port])
    );
  end

  // Frames where they are checked; before that, words of each port, and of its queue.
  logic [Inlets-1:0] soon, checked, authentic, busy_q;  // busy: the frame is the engine's
  logic [Inlets-1:0] done, store, writes_word, writes_last, frame_reads;
  logic [Inlets-1:0] begun, others_wait;
  packet_t [Inlets-1:0] packets;
  header_t [Inlets-1:0] headers;
  logic [Inlets-1:0][7:0] from;
  word_t [Inlets-1:0] words;
  word_at_t [Inlets-1:0] write_at;
  word_at_t frame_at;
  logic frame_read, writes, again, takes, over, tables_busy;
  job_entry_t [Jobs-1:0] jobs;

  logic [Ports-1:0] queue_valid, queue_ready, queue_last, queue_overruns;
  word_t [Ports-1:0] queue_data;
  logic [Ports-1:0][WordBytes-1:0] queue_keep;
  logic [Inlets-1:0] inlet_overruns;

  for (genvar port = 0; port < Ports; ++port) begin : g_port
    if (QueueWords == 0) begin : g_no_queue
      assign queue_valid[port] = in_valid[port];
      assign queue_data[port] = in_data[port];
      assign queue_keep[port] = in_keep[port];
      assign queue_last[port] = in_last[port];
      assign in_ready[port] = queue_ready[port];
      assign queue_overruns[port] = inlet_overruns[port];
    end else begin : g_queue
      sw_queue #(
        .Words(QueueWords),
        .LongestFrame(LongestFrame),
        .FastClock(FastClock),
        .WholeFrames(port + Inlets < Ports || port >= Inlets ? 1 : 0)  // if others have the inlet, too
      ) u_queue (
        .clk_i,
        .rst_ni,
        .patience_i,
        .s_valid_i(in_valid[port]),
        .s_ready_o(in_ready[port]),
        .s_data_i (in_data[port]),
        .s_keep_i (in_keep[port]),
        .s_last_i (in_last[port]),
        .overrun_o(queue_overruns[port]),
        .m_valid_o(queue_valid[port]),
        .m_ready_i(queue_ready[port]),
        .m_data_o (queue_data[port]),
        .m_keep_o (queue_keep[port]),
        .m_last_o (queue_last[port])
      );
    end
  end
  if (QueueWords != 0) begin : g_no_overruns
    // What waits in a queue waits without end.
    logic unused_overruns;
    assign unused_overruns = ^inlet_overruns;
  end

  for (genvar inlet = 0; inlet < Inlets; ++inlet) begin : g_inlet
    // Its ports: number inlet, and every Inlets-th after it.
    localparam int unsigned Own = (Ports - inlet + Inlets - 1) / Inlets;
    logic valid, ready, last;
    word_t data;
    logic [WordBytes-1:0] keep;
    logic [7:0] gathered_from;
    assign headers[inlet] = packets[inlet].head.header;

    if (Own == 1) begin : g_one
      assign valid = queue_valid[inlet];
      assign data = queue_data[inlet];
      assign keep = queue_keep[inlet];
      assign last = queue_last[inlet];
      assign queue_ready[inlet] = ready;
      assign gathered_from = 8'(inlet);
    end else begin : g_several
      logic [$clog2(Own)-1:0] own_from;
      logic [Own-1:0] own_valid, own_ready, own_last;
      word_t [Own-1:0] own_data;
      logic [Own-1:0][WordBytes-1:0] own_keep;
      assign gathered_from = 8'(inlet) + 8'(Inlets) * 8'(own_from);
      for (genvar i = 0; i < Own; ++i) begin : g_own
        assign own_valid[i] = queue_valid[inlet+i*Inlets];
        assign own_data[i] = queue_data[inlet+i*Inlets];
        assign own_keep[i] = queue_keep[inlet+i*Inlets];
        assign own_last[i] = queue_last[inlet+i*Inlets];
        assign queue_ready[inlet+i*Inlets] = own_ready[i];
      end
      sw_gather #(
        .Ports(Own)
      ) u_gather (
        .clk_i,
        .rst_ni,
        .s_valid_i(own_valid),
        .s_ready_o(own_ready),
        .s_data_i (own_data),
        .s_keep_i (own_keep),
        .s_last_i (own_last),
        .m_valid_o(valid),
        .m_ready_i(ready),
        .m_data_o (data),
        .m_keep_o (keep),
        .m_last_o (last),
        .m_from_o (own_from)
      );
    end

    sw_inlet #(
      .Frames(Frames),
      .LongestFrame(LongestFrame),
      .Jobs(Jobs),
      .TagWordCycles(TagWordCycles),
      .FastClock(FastClock)
    ) u_inlet (
      .clk_i,
      .rst_ni,
      .own_mac_i,
      .own_ip_i,
      .own_udp_port_i,
      .s_valid_i  (valid),
      .s_ready_o  (ready),
      .s_data_i   (data),
      .s_keep_i   (keep),
      .s_last_i   (last),
      .s_from_i   (gathered_from),
      .patience_i (QueueWords == 0 ? patience_i : '1),
      .overrun_o  (inlet_overruns[inlet]),
      .jobs_i     (jobs),
      .again_i    (again),
      .soon_o     (soon[inlet]),
      .checked_o  (checked[inlet]),
      .authentic_o(authentic[inlet]),
      .packet_o   (packets[inlet]),
      .from_o     (from[inlet]),
      .done_i     (done[inlet]),
      .store_i    (store[inlet]),
      .writes_o   (writes_word[inlet]),
      .last_o     (writes_last[inlet]),
      .write_at_o (write_at[inlet]),
      .reads_i    (frame_reads[inlet]),
      .read_i     (frame_read),
      .word_at_i  (frame_at),
      .word_o     (words[inlet])
    );
  end

  logic found_valid, touch;
  found_t found;
  logic [$clog2(Groups)-1:0] child_group_at;
  logic [$clog2(Groups)-1:0] target_group_at;
  logic [15:0] child_at, target_at;
  address_t child, target, target_parent;
  logic [15:0] key_at;  // of Jobs
  logic [127:0] key;
  logic [$clog2(Groups)-1:0] first_group_at, address_group_at;
  logic [Ports-1:0] first_there;
  address_t [Ports-1:0] first;
  logic [Children-1:0] not_first;

  logic unused_key_at;
  assign unused_key_at = ^key_at;

  sw_lookup #(
    .Ports(Ports),
    .Inlets(Inlets),
    .Children(Children),
    .Jobs(Jobs),
    .Groups(Groups),
    .ForwardEntries(ForwardEntries),
    .Window(Window),
    .OperandBytes(OperandBytes),
    .FastClock(FastClock)
  ) u_lookup (
    .clk_i,
    .rst_ni,
    .own_mac_i,
    .control_port_i,
    .write_i         (writes),
    .table_i         (table_e'(control_table_i)),
    .index_i         (control_index_i),
    .record_i        (control_record_i),
    .again_o         (again),
    .busy_o          (tables_busy),
    .jobs_o          (jobs),
    .asks_i          (soon & ~busy_q),
    .packets_i       (packets),
    .from_i          (from),
    .take_i          (takes),
    .over_i          (over),
    .ready_o         (found_valid),
    .found_o         (found),
    .child_group_at_i(child_group_at),
    .child_i         (child_at),
    .child_o         (child),
    .target_group_at_i(target_group_at),
    .target_i        (target_at),
    .target_o        (target),
    .target_parent_o (target_parent),
    .key_at_i        ($clog2(Jobs)'(key_at)),
    .key_o           (key),
    .first_group_at_i(first_group_at),
    .first_there_o   (first_there),
    .address_group_at_i(address_group_at),
    .first_o         (first),
    .not_first_o     (not_first),
    .touch_i         (touch),
    .touched_o
  );

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      busy_q <= '0;
    end else begin
      busy_q <= (busy_q | (takes ? Inlets'(found.others) | (Inlets'(1) << found.inlet) : '0)) &
          ~(done | others_wait | (writes_word & writes_last));
    end
  end
  logic [Ports-1:0] taken;
  logic [Inlets-1:0] begun_here;
  sw_delay_flags #(
    .Width (Inlets),
    .Cycles(FastClock)
  ) u_begun (
    .clk_i,
    .rst_ni,
    .flags_i(begun),
    .flags_o(begun_here)
  );
  always_comb begin
    taken = '0;
    for (int unsigned i = 0; i < Inlets; ++i) taken |= Ports'(begun_here[i]) << from[i];
  end
  sw_delay_flags #(
    .Width (Ports),
    .Cycles(FastClock)
  ) u_taken (
    .clk_i,
    .rst_ni,
    .flags_i(taken),
    .flags_o(taken_o)
  );

  logic counts, lost;
  logic [$clog2(Inlets+1)-1:0] amount;
  counter_e counter;

  sw_engine #(
    .Ports(Ports),
    .Inlets(Inlets),
    .Children(Children),
    .Groups(Groups),
    .Window(Window),
    .OperandBytes(OperandBytes),
    .TagWordCycles(TagWordCycles),
    .BeatCycles(BeatCycles),
    .FastClock(FastClock)
  ) u_engine (
    .clk_i,
    .rst_ni,
    .own_mac_i,
    .own_ip_i,
    .own_udp_port_i,
    .control_valid_i,
    .control_ready_o,
    .writes_o        (writes),
    .control_table_i (table_e'(control_table_i)),
    .control_index_i,
    .control_record_i,
    .tables_busy_i   (tables_busy),
    .found_valid_i   (found_valid),
    .found_i         (found),
    .take_o          (takes),
    .over_o          (over),
    .headers_i       (headers),
    .checked_i       (checked),
    .authentic_i     (authentic),
    .begun_o         (begun),
    .release_o       (others_wait),
    .done_o          (done),
    .store_o         (store),
    .writes_i        (writes_word),
    .last_i          (writes_last),
    .write_at_i      (write_at),
    .words_i         (words),
    .frame_reads_o   (frame_reads),
    .frame_read_o    (frame_read),
    .frame_at_o      (frame_at),
    .m_valid_o       (out_valid),
    .m_ready_i       (out_ready),
    .m_data_o        (out_data),
    .m_keep_o        (out_keep),
    .m_last_o        (out_last),
    .child_group_at_o(child_group_at),
    .child_o         (child_at),
    .child_i         (child),
    .target_group_at_o(target_group_at),
    .target_o        (target_at),
    .target_i        (target),
    .target_parent_i (target_parent),
    .key_at_o        (key_at),
    .key_i           (key),
    .first_group_at_o(first_group_at),
    .first_there_i   (first_there),
    .address_group_at_o(address_group_at),
    .first_i         (first),
    .not_first_i     (not_first),
    .touch_o         (touch),
    .counts_o        (counts),
    .counter_o       (counter),
    .amount_o        (amount),
    .lost_o          (lost)
  );

  sw_counters #(
    .Ports(Ports),
    .FastClock(FastClock)
  ) u_counters (
    .clk_i,
    .rst_ni,
    .counts_i  (counts),
    .counter_i (counter),
    .amount_i  ($clog2(Ports + 1)'(amount)),
    .lost_i    (lost),
    .overruns_i(queue_overruns),
    .counters_o
  );

endmodule
