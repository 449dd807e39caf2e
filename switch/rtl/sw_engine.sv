// SPDX-License-Identifier: Apache-2.0
//
// What a switch does with a packet that has been looked up, one at a time: its slot, where its operand
// is stored, and what is to be sent (sw_sender, which goes on while the next packets come). Frames for
// others go on as they are. A contribution is stored together with those at other inlets that say the
// same of other children (found_t's others), if this is what would come of them one after the other,
// each new to a slot that is not complete. If not, they wait for their turn.
//
// found_i is taken in a cycle in which found_valid_i and take_o are 1, with its others, and with FastClock
// stays until over_o is 1, one cycle; all of them are
// checked, or will be in a few cycles: until then nothing comes of it. begun_o of the inlets whose
// packets are worked off is 1 for one cycle then, and what comes of it is as if they came in the order
// of the inlets; release_o of the others that wait. A frame is kept until done_o of its inlet is 1, one
// cycle, or its operand is stored: store_o of its inlet is 1 for one cycle, and words then come as from
// sw_inlet. While frame_reads_o of an inlet is 1, its word is that of its frame
// frame_at_o of two cycles before, of those in which frame_read_o is 1. Tables are written when
// control_valid_i and control_ready_o are 1, with nothing under way; a group that is written has all
// its slots before their first use; tables_busy_i: they are not ready for packets. amount_o of counter_o
// is counted when counts_o is 1, and lost_o is a frame that is not sent, as its port is not there.
module sw_engine
  import sw_protocol_pkg::*;
  import sw_switch_pkg::*;
#(
  parameter  int unsigned Ports = 18,
  parameter  int unsigned Inlets = Ports,
  parameter  int unsigned Children = 16,
  parameter  int unsigned Groups = 4,
  parameter  int unsigned Window = 16,
  parameter  int unsigned OperandBytes = BurstOperandBytes,
  parameter  int unsigned TagWordCycles = 1,
  parameter  int unsigned BeatCycles = 1,
  parameter  int unsigned FastClock = 0,
  localparam int unsigned InletBits = Inlets > 1 ? $clog2(Inlets) : 1,
  localparam int unsigned CountBits = $clog2(Inlets + 1),
  localparam int unsigned GroupBits = $clog2(Groups)
) (
  input  logic                      clk_i,
  input  logic                      rst_ni,
  input  logic [47:0]               own_mac_i,
  input  logic [31:0]               own_ip_i,
  input  logic [15:0]               own_udp_port_i,
  input  logic                      control_valid_i,
  output logic                      control_ready_o,
  output logic                      writes_o,  // to the tables
  input  table_e                    control_table_i,
  input  logic [15:0]               control_index_i,
  input  logic [RecordBits-1:0]     control_record_i,
  input  logic                      tables_busy_i,
  input  logic                      found_valid_i,
  input  found_t                    found_i,
  output logic                      take_o,
  output logic                      over_o,
  input  header_t [Inlets-1:0]       headers_i,  // of all inlets' packets
  input  logic [Inlets-1:0]          checked_i,
  input  logic [Inlets-1:0]          authentic_i,
  output logic [Inlets-1:0]         begun_o,
  output logic [Inlets-1:0]         release_o,
  output logic [Inlets-1:0]         done_o,
  output logic [Inlets-1:0]         store_o,
  input  logic [Inlets-1:0]          writes_i,
  input  logic [Inlets-1:0]          last_i,
  input  word_at_t [Inlets-1:0]      write_at_i,
  input  word_t [Inlets-1:0]         words_i,
  output logic [Inlets-1:0]         frame_reads_o,
  output logic                      frame_read_o,
  output word_at_t                  frame_at_o,
  output logic [Ports-1:0]          m_valid_o,
  input  logic [Ports-1:0]          m_ready_i,
  output word_t [Ports-1:0]         m_data_o,
  output logic [WordBytes-1:0]      m_keep_o,
  output logic                      m_last_o,
  // Of a group's children, one, without a clock, and of another's, with its parent; a job's key; the first
  // ones behind each port, as of sw_lookup; and that something came of the first group.
  output logic [GroupBits-1:0]      child_group_at_o,
  output logic [15:0]               child_o,
  input  address_t                  child_i,
  output logic [GroupBits-1:0]      target_group_at_o,
  output logic [15:0]               target_o,
  input  address_t                  target_i,
  input  address_t                  target_parent_i,
  output logic [15:0]               key_at_o,
  input  logic [127:0]              key_i,
  output logic [GroupBits-1:0]      first_group_at_o,
  input  logic [Ports-1:0]          first_there_i,
  output logic [GroupBits-1:0]      address_group_at_o,
  input  address_t [Ports-1:0]      first_i,
  input  logic [Children-1:0]       not_first_i,
  output logic                      touch_o,
  output logic                      counts_o,
  output counter_e                  counter_o,
  output logic [CountBits-1:0]      amount_o,
  output logic                      lost_o
);

  localparam int unsigned Slots = SlotsPerWindow * Window;
  localparam int unsigned SlotAtBits = GroupBits + $clog2(Slots);
  localparam int unsigned ChildBits = $clog2(Children);

  typedef enum logic [3:0] {
    StIdle,
    StInit,   // a group's slots, and tables
    StSort,   // what is no packet of a known job
    StWeigh,  // its slot, and whose it is
    StJudge,  // with FastClock: what the tag makes of that
    StRules,  // of its slot
    StAnswer, // with FastClock: what is to be sent
    StIssue   // its operand is stored from now on; what is to be sent is given away
  } state_e;

  state_e state_q, state_d;

  // The packet, and what the tables know of it.
  found_t found_q;
  packet_t packet;
  header_t header;
  address_t source;
  logic [GroupBits-1:0] group_at;
  group_entry_t group;
  logic [2:0] weighed_q;

  // The others: their inlets, and whose they are.
  logic [Inlets-1:0] others;
  logic [Children-1:0] others_children_q, others_present_q;
  logic [Children-1:0][InletBits-1:0] child_inlets_q;  // of these, and of the packet's child
  logic [CountBits-1:0] others_count_q;
  logic is_checked, is_authentic_q, others_authentic_q, joined;
  logic has_child_twice_q;

  // What is to be done with it.
  logic answers_q;
  logic [Children-1:0] stores_q;
  logic [Inlets-1:0] stores_inlets_q, done_inlets_q;
  answer_t answer_q;

  // The slot.
  logic [SlotAtBits-1:0] slot_at;
  slot_t slot, slot_next;
  action_e action;
  counter_e rule_counter;
  reason_e reason;
  logic complete, slots_busy, slot_busy, touches;

  assign packet = found_q.packet;
  assign header = packet.head.header;
  assign source.port = found_q.port;
  assign source.mac = packet.head.source_mac;
  assign source.ip = packet.head.source_ip;
  assign source.udp_port = packet.head.source_port;
  assign group_at = found_q.group_at[GroupBits-1:0];
  assign group = found_q.group;
  assign others = found_q.others[Inlets-1:0];

  assign child_group_at_o = group_at;
  assign child_o = header.child;
  assign touch_o = touches && state_q == StRules;

  logic writes, record_waits, sender_idle, sender_ready, write_tag, issues;
  logic [SlotAtBits-1:0] tag_at;
  logic [63:0] tag;
  logic [Children-1:0] storing, child_bit, present_bit;
  if (FastClock != 0) begin : g_ready_later
    // Idle it stays, since nothing is taken while a record waits. That is taken a cycle after the write
    // began: it stays for the tables that are far. Of records that follow one another at once, nothing
    // is taken between.
    logic waits_q;
    always_ff @(posedge clk_i or negedge rst_ni) begin
      if (!rst_ni) begin
        {waits_q, writes, control_ready_o, record_waits} <= '0;
      end else begin
        waits_q <= control_valid_i && !writes && !control_ready_o;
        writes <= waits_q && !writes && !control_ready_o && state_q == StIdle && sender_idle;
        control_ready_o <= writes;
        record_waits <= control_valid_i || waits_q || writes || control_ready_o;
      end
    end
  end else begin : g_ready_now
    assign control_ready_o = state_q == StIdle && sender_idle;
    assign writes = control_valid_i && control_ready_o;
    assign record_waits = control_valid_i;
  end
  assign writes_o = writes;

  logic init;
  assign init = writes && control_table_i == TableGroups;

  sw_slots #(
    .Groups(Groups),
    .Window(Window)
  ) u_slots (
    .clk_i,
    .rst_ni,
    .init_i       (init),
    .init_group_i (GroupBits'(control_index_i)),
    .init_record_i(control_record_i),
    .busy_o       (slots_busy),
    .group_at_i   (group_at),
    .window_i     (group.window),
    .sequence_i   (header.header_sequence[$clog2(Slots)-1:0]),
    .at_o         (slot_at),
    .slot_o       (slot),
    .write_i      (state_q == StRules && action inside {ActStore, ActTakeResult}),
    .slot_i       (slot_next),
    .write_tag_i  (write_tag),
    .tag_at_i     (tag_at),
    .tag_i        (tag)
  );

  sw_judge #(
    .Children(Children),
    .FastClock(FastClock)
  ) u_judge (
    .clk_i,
    .header_i     (header),
    .source_i     (source),
    .authentic_i  (is_authentic_q),
    .group_found_i(found_q.group_found),
    .group_i      (group),
    .child_i,
    .slot_i       (slot),
    .others_i     (others_children_q),
    .present_i    (others_present_q),
    .others_authentic_i(others_authentic_q),
    .action_o     (action),
    .counter_o    (rule_counter),
    .reason_o     (reason),
    .complete_o   (complete),
    .touches_o    (touches),
    .joined_o     (joined),
    .slot_o       (slot_next)
  );

  always_comb begin
    counter_o = rule_counter;
    amount_o = CountBits'(1) + (state_q == StRules && joined ? others_count_q : '0);
    counts_o = state_q == StRules;
    if (state_q == StSort) begin
      counts_o = 1'b1;
      unique case (packet.verdict)
        VerdictMalformed: counter_o = CountMalformed;
        VerdictUndeliverable: counter_o = CountUndeliverable;
        VerdictPacket: counter_o = CountUnknownJob;
        default: counter_o = found_q.leads ? CountForwarded : CountUndeliverable;
      endcase
    end
  end

  // What is sent.
  answer_t answer;
  sw_answer #(
    .FastClock(FastClock)
  ) u_make_answer (
    .clk_i,
    .found_i  (found_q),
    .source_i (source),
    .sorts_i  (state_q == StSort),
    .action_i (action),
    .reason_i (reason),
    .slot_i   (slot_next),
    .slot_at_i(16'(slot_at)),
    .answer_o (answer)
  );

  // One after the other, if no table is to be written.
  logic takes;
  state_e first_state;
  // With FastClock a cycle later: what is taken does not depend on what others are ready for. What is
  // to be sent stays in answer_q then until the sender is done with it, and nothing else is before that.
  assign takes = found_valid_i && !record_waits &&
      (state_q == StIdle || (FastClock == 0 && issues)) &&
      (FastClock == 0 || sender_ready || first_state == StWeigh);
  assign over_o = issues;
  assign first_state = found_i.packet.verdict == VerdictPacket && found_i.job_found ? StWeigh : StSort;

  logic is_weighed;
  assign is_weighed = weighed_q == 3'(3 + FastClock);

  // Nothing else makes it impossible again: with FastClock it is known a cycle before.
  logic may_issue;
  assign may_issue = (!answers_q || sender_ready) && (stores_q & storing) == '0;
  if (FastClock != 0) begin : g_issues_later
    always_ff @(posedge clk_i or negedge rst_ni) begin
      if (!rst_ni) begin
        issues <= 1'b0;
      end else begin
        issues <= state_d == StIssue && may_issue;
      end
    end
  end else begin : g_issues_now
    assign issues = state_q == StIssue && may_issue;
  end

  always_comb begin
    state_d = state_q;
    unique case (state_q)
      StIdle: begin
        if (writes && control_table_i inside {TableGroups, TableChildren}) begin
          state_d = StInit;
        end else if (takes) begin
          state_d = first_state;
        end
      end
      StInit: if (!slots_busy && !tables_busy_i) state_d = StIdle;
      StSort: state_d = FastClock != 0 ? StAnswer : StIssue;
      StWeigh: if (is_weighed && is_checked) state_d = FastClock != 0 ? StJudge : StRules;
      StJudge: if (sender_ready) state_d = StRules;
      StRules: state_d = FastClock != 0 ? StAnswer : StIssue;
      StAnswer: state_d = StIssue;
      default: if (issues) state_d = takes ? first_state : StIdle;
    endcase
  end
  assign take_o = takes;

  // What begins, or does not.
  logic [Inlets-1:0] inlet_bit;
  assign inlet_bit = Inlets'(1) << found_q.inlet;
  assign child_bit = Children'(1) << header.child[ChildBits-1:0];
  assign present_bit = header.flags[EmptyFlagBit] ? '0 : child_bit;
  always_comb begin
    begun_o = '0;
    release_o = '0;
    if (state_q inside {StSort, StRules}) begin
      begun_o = inlet_bit;
      if (state_q == StRules && joined) begin
        begun_o |= others;
      end else begin
        release_o = others;
      end
    end
  end

  // Whose the others are: known before their slot is.
  logic [Children-1:0] others_children, others_present;
  logic [Children-1:0][InletBits-1:0] child_inlets;
  always_comb begin
    others_children = '0;
    others_present = '0;
    child_inlets = '0;
    child_inlets[header.child[ChildBits-1:0]] = found_q.inlet[InletBits-1:0];
    for (int unsigned i = 0; i < Inlets; ++i) begin
      if (others[i]) begin
        others_children[headers_i[i].child[ChildBits-1:0]] = 1'b1;
        others_present[headers_i[i].child[ChildBits-1:0]] = !headers_i[i].flags[EmptyFlagBit];
        child_inlets[headers_i[i].child[ChildBits-1:0]] = InletBits'(i);
      end
    end
  end
  logic [Inlets-1:0] is_empty;
  for (genvar inlet = 0; inlet < Inlets; ++inlet) begin : g_empty
    assign is_empty[inlet] = headers_i[inlet].flags[EmptyFlagBit];
  end
  assign is_checked = ((inlet_bit | others) & ~checked_i) == '0;
  always_ff @(posedge clk_i) begin
    others_children_q <= others_children;
    others_present_q <= others_present;
    others_count_q <= CountBits'($countones(others));
    child_inlets_q <= child_inlets;
    has_child_twice_q <= (others_children & child_bit) != '0;
    is_authentic_q <= (inlet_bit & authentic_i) != '0;
    others_authentic_q <= (others & ~authentic_i) == '0;
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      state_q <= StIdle;
    end else begin
      state_q <= state_d;
    end
  end

  if (FastClock != 0) begin : g_found_stays
    assign found_q = found_i;
  end else begin : g_found_goes
    always_ff @(posedge clk_i) if (takes) found_q <= found_i;
  end

  // That of the cycle before StIssue.
  sw_record #(
    .Width($bits(answer_t))
  ) u_answer (
    .clk_i,
    .takes_next_i(FastClock != 0 ? state_q inside {StSort, StRules} :
        state_d inside {StSort, StRules}),
    .value_i     (answer),
    .value_o     (answer_q)
  );

  always_ff @(posedge clk_i) begin
    // What is known of a slot is known when what was to be sent of it has been sent.
    if (state_q != StWeigh || slot_busy) begin
      weighed_q <= '0;
    end else if (!is_weighed) begin
      weighed_q <= weighed_q + 1'b1;
    end
    if (state_q == StSort) begin
      stores_q <= '0;
      stores_inlets_q <= '0;
      done_inlets_q <= packet.verdict inside {VerdictForward, VerdictControl} && found_q.leads ? '0 :
          inlet_bit;
      answers_q <= packet.verdict == VerdictPacket ? header.kind == KindContribute :
          packet.verdict inside {VerdictForward, VerdictControl} && found_q.leads;
    end else if (state_q == StRules) begin
      stores_q <= action == ActStore ? present_bit | (joined ? others_present_q : '0) : '0;
      stores_inlets_q <= action == ActStore ? begun_o & ~is_empty : '0;
      done_inlets_q <= action inside {ActStore, ActTakeResult} ? begun_o & is_empty : begun_o;
      answers_q <= action == ActStore ? complete : action != ActDrop;
    end
  end

  logic take;
  logic [InletBits-1:0] take_inlet;
  logic [Inlets-1:0] frames_done, taken_inlets;
  sw_delay_flags #(
    .Width (Inlets),
    .Cycles(FastClock)
  ) u_taken_inlets (
    .clk_i,
    .rst_ni,
    .flags_i(Inlets'(take) << take_inlet),
    .flags_o(taken_inlets)
  );
  assign store_o = (issues ? stores_inlets_q : '0) | taken_inlets;
  assign done_o = (issues ? done_inlets_q : '0) | frames_done;

  sw_sender #(
    .Ports(Ports),
    .Inlets(Inlets),
    .Children(Children),
    .Groups(Groups),
    .Slots((1 << GroupBits) * Slots),
    .OperandBytes(OperandBytes),
    .TagWordCycles(TagWordCycles),
    .BeatCycles(BeatCycles),
    .FastClock(FastClock)
  ) u_sender (
    .clk_i,
    .rst_ni,
    .own_mac_i,
    .own_ip_i,
    .own_udp_port_i,
    .valid_i      (issues && answers_q),
    .ready_o      (sender_ready),
    .answer_i     (answer_q),
    .slot_at_i    (slot_at),
    .slot_busy_o  (slot_busy),
    .idle_o       (sender_idle),
    .writes_i,
    .last_i,
    .write_at_i,
    .words_i,
    .store_i      (issues ? stores_q : '0),
    .store_inlets_i(child_inlets_q),
    .storing_o    (storing),
    .take_o       (take),
    .take_inlet_o (take_inlet),
    .frame_reads_o,
    .frame_read_o,
    .frame_at_o,
    .frame_done_o (frames_done),
    .write_tag_o  (write_tag),
    .tag_at_o     (tag_at),
    .tag_o        (tag),
    .target_group_at_o,
    .target_o,
    .target_i,
    .target_parent_i,
    .key_at_o,
    .key_i,
    .first_group_at_o,
    .first_there_i,
    .address_group_at_o,
    .first_i,
    .not_first_i,
    .lost_o,
    .m_valid_o,
    .m_ready_i,
    .m_data_o,
    .m_keep_o,
    .m_last_o
  );

  logic unused_bits;
  assign unused_bits = ^{found_q, packet, control_index_i, headers_i};

  a_record_stays_until_it_is_taken :
  assert property (@(posedge clk_i) disable iff (!rst_ni) control_valid_i && !control_ready_o |=>
      control_valid_i && $stable(control_table_i) && $stable(control_index_i) &&
      $stable(control_record_i));
  found_stays_until_it_is_over :
  assert property (@(posedge clk_i) disable iff (!rst_ni) state_q inside {StSort, StWeigh, StJudge, StRules, StAnswer} |=>
      $stable(found_q));
  issues_what_it_may :
  assert property (@(posedge clk_i) disable iff (!rst_ni) issues |-> state_q == StIssue && may_issue);
  others_are_of_other_children :
  assert property (@(posedge clk_i) disable iff (!rst_ni) state_q == StRules && joined |->
      $countones(others_children_q) == 32'(others_count_q) && !has_child_twice_q);

endmodule
