// SPDX-License-Identifier: Apache-2.0
//
// What a switch does with a packet that has been checked and looked up, to the last frame that it
// sends, one packet at a time: slot, reduction, answer. Frames for others go on as they are.
//
// found_i is taken in a cycle in which found_valid_i and take_o are 1; its frame is kept to
// packet_done_o, which is 1 for one cycle, in which the next may be taken; packet_word_i is the word
// of its frame packet_word_at_o of two cycles before, of those in which packet_read_o is 1. Frames
// leave by AXI4-Streams as sw_parser's, in the order of what they answer: to several children at
// once, but to those behind the same port in the order of their numbers. Who does not take a frame
// stops all. A frame to a port that is not there is dropped. Tables are written when control_valid_i
// and control_ready_o are 1, between packets; a group that is written has all its slots before their
// first use. counter_o is counted when counts_o is 1.
module sw_engine
  import sw_protocol_pkg::*;
  import sw_reduce_pkg::operation_t;
  import sw_switch_pkg::*;
#(
  parameter  int unsigned Ports = 18,
  parameter  int unsigned Children = 16,
  parameter  int unsigned Groups = 4,
  parameter  int unsigned Window = 16,
  parameter  int unsigned OperandBytes = BurstOperandBytes,
  parameter  int unsigned TagWordCycles = 2,
  localparam int unsigned PortBits = $clog2(Ports),
  localparam int unsigned GroupBits = $clog2(Groups)
) (
  input  logic                      clk_i,
  input  logic                      rst_ni,
  input  logic [47:0]               own_mac_i,
  input  logic [31:0]               own_ip_i,
  input  logic [15:0]               own_udp_port_i,
  input  logic                      control_valid_i,
  output logic                      control_ready_o,
  input  table_e                    control_table_i,
  input  logic [15:0]               control_index_i,
  input  logic [RecordBits-1:0]     control_record_i,
  input  logic                      found_valid_i,
  input  found_t                    found_i,
  output logic                      take_o,
  output logic                      packet_done_o,
  output logic                      packet_read_o,
  output word_at_t                  packet_word_at_o,
  input  word_t                     packet_word_i,
  output logic [Ports-1:0]          m_valid_o,
  input  logic [Ports-1:0]          m_ready_i,
  output word_t [Ports-1:0]         m_data_o,
  output logic [WordBytes-1:0]      m_keep_o,
  output logic                      m_last_o,
  // Of a group's children, one, without a clock; and that something came of the group.
  output logic [GroupBits-1:0]      child_group_at_o,
  output logic [15:0]               child_o,
  input  address_t                  child_i,
  output logic                      touch_o,
  output logic                      counts_o,
  output counter_e                  counter_o
);

  localparam int unsigned Slots = SlotsPerWindow * Window;
  localparam int unsigned SlotAtBits = GroupBits + $clog2(Slots);
  localparam int unsigned ChildBits = $clog2(Children);
  localparam int unsigned Targets = Children > Ports ? Children : Ports;
  localparam int unsigned TargetBits = $clog2(Targets);

  typedef enum logic [3:0] {
    StIdle,
    StInit,    // a group's slots
    StSort,    // what is no packet of a known job
    StWeigh,   // its slot, and whose it is
    StRules,   // of its slot
    StStore,   // its operand, or the result
    StReduce,  // the operands of all children
    StSeal,    // the tag of what is to be sent
    StTarget,  // those that it goes to
    StSend,    // one frame, to several ports at once
    StDone
  } state_e;

  typedef enum logic [1:0] {
    ToPorts,  // the frame, as it is
    ToSource,
    ToParent,
    ToChildren
  } to_e;

  state_e state_q, state_d;
  logic enters_q;  // the first cycle in a state

  // The packet, and what the tables know of it.
  found_t found_q;
  packet_t packet;
  header_t header;
  address_t source, child;
  bytes_t payload_bytes;
  logic [GroupBits-1:0] group_at;
  group_entry_t group;
  logic [Ports-1:0] ports;
  logic [1:0] weighed_q;

  // What is sent, and to whom.
  to_e to_q;
  header_t out_q;
  bytes_t out_payload_q;
  address_t address;
  logic [Targets-1:0] targets_q;
  logic [TargetBits-1:0] target;

  // The slot.
  logic [SlotAtBits-1:0] slot_at;
  slot_t slot, slot_next, slot_q, slot_sealed;
  action_e action;
  counter_e rule_counter;
  reason_e reason;
  logic complete, complete_q, slots_busy, touches;

  // Of what is sent to several ports at once: those that it goes to, each once. Who has the same port
  // as another is sent to in a later round.
  logic [Ports-1:0] round_q, taken;
  logic gathers, chooses, leads_nowhere, waits_for_round, word_valid, word_taken;
  word_t word;
  word_at_t word_at;
  logic [19:0] ipv4_sum_so_far;

  // The units that take more than a cycle.
  logic tag_start, tag_valid, reduce_start, reduce_done, send_start, send_done;
  logic [63:0] tag;
  word_at_t tag_at, send_at, copy_q, fetch_q, payload_words;
  word_t sent_word;
  head_t head;

  assign packet = found_q.packet;
  assign header = packet.head.header;
  assign source.port = found_q.port;
  assign source.mac = packet.head.source_mac;
  assign source.ip = packet.head.source_ip;
  assign source.udp_port = packet.head.source_port;
  assign payload_bytes = packet.bytes - bytes_t'(HeadBytes);
  assign payload_words = words_of(payload_bytes);
  assign group_at = found_q.group_at[GroupBits-1:0];
  assign group = found_q.group;
  assign ports = found_q.ports[Ports-1:0];

  assign child_group_at_o = group_at;
  assign child_o = gathers ? 16'(target) : header.child;
  assign child = child_i;
  assign touch_o = touches && state_q == StRules;

  logic writes;
  assign control_ready_o = state_q == StIdle;
  assign writes = control_valid_i && control_ready_o;

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
    .write_i      ((state_q == StRules && action inside {ActStore, ActTakeResult}) ||
                   (state_q == StSeal && tag_valid && complete_q)),
    .slot_i       (state_q == StRules ? slot_next : slot_sealed)
  );

  always_comb begin
    slot_sealed = slot_q;
    slot_sealed.tag = tag;
  end
  logic unused_runs, unused_bits;
  assign unused_bits = ^{slot_q.tag, found_q.group_at, found_q.ports, control_index_i};

  sw_judge #(
    .Children(Children)
  ) u_judge (
    .clk_i,
    .header_i     (header),
    .source_i     (source),
    .authentic_i  (found_q.authentic),
    .group_found_i(found_q.group_found),
    .group_i      (group),
    .child_i      (child),
    .slot_i       (slot),
    .action_o     (action),
    .counter_o    (rule_counter),
    .reason_o     (reason),
    .complete_o   (complete),
    .touches_o    (touches),
    .slot_o       (slot_next)
  );

  always_comb begin
    counter_o = rule_counter;
    counts_o = state_q == StRules;
    if (gathers) begin
      counter_o = CountUndeliverable;
      counts_o = targets_q != '0 && leads_nowhere;
    end
    if (state_q == StSort) begin
      counts_o = 1'b1;
      unique case (packet.verdict)
        VerdictMalformed: counter_o = CountMalformed;
        VerdictUndeliverable: counter_o = CountUndeliverable;
        VerdictPacket: begin
          counter_o = CountUnknownJob;
          counts_o = !found_q.job_found;
        end
        default: counter_o = ports == '0 ? CountUndeliverable : CountForwarded;
      endcase
    end
  end

  sw_head u_head (
    .clk_i,
    .own_mac_i,
    .own_ip_i,
    .own_udp_port_i,
    .header_i       (out_q),
    .payload_bytes_i(out_payload_q),
    .head_o         (head),
    .sum_o          (ipv4_sum_so_far)
  );

  assign tag_start = enters_q && state_q == StSeal;
  assign reduce_start = enters_q && state_q == StReduce;
  assign send_start = state_q == StTarget && state_d == StSend;

  sw_tagger #(
    .WordCycles(TagWordCycles)
  ) u_tagger (
    .clk_i,
    .rst_ni,
    .start_i        (tag_start),
    .key_i          (found_q.key),
    .header_i       (out_q),
    .payload_bytes_i(out_payload_q),
    .word_at_o      (tag_at),
    .word_i         (sent_word),
    .runs_o         (unused_runs),
    .tag_valid_o    (tag_valid),
    .tag_o          (tag)
  );

  operation_t operation;
  assign operation.op = slot_q.op;
  assign operation.element = slot_q.element;

  sw_reducer #(
    .Children(Children),
    .Slots((1 << GroupBits) * Slots),
    .OperandWords(OperandBytes / WordBytes)
  ) u_reducer (
    .clk_i,
    .rst_ni,
    .slot_at_i  (slot_at),
    .write_i    (state_q == StStore),
    .sent_i     (header.kind == KindResult),
    .child_i    (header.child[ChildBits-1:0]),
    .write_at_i (copy_q),
    .word_i     (packet_word_i),
    .start_i    (reduce_start),
    .words_i    (words_of(out_payload_q)),
    .operation_i(operation),
    .present_i  (slot_q.present[Children-1:0]),
    .done_o     (reduce_done),
    .read_i     (packet_read_o),
    .read_at_i  (state_q == StSeal ? tag_at : send_at),
    .sent_o     (sent_word)
  );

  sw_builder u_builder (
    .clk_i,
    .rst_ni,
    .start_i    (send_start),
    .raw_i      (to_q == ToPorts),
    .head_i     (head),
    .bytes_i    (to_q == ToPorts ? packet.bytes : bytes_t'(HeadBytes) + out_payload_q),
    .read_o     (packet_read_o),
    .word_at_o  (send_at),
    .word_i     (to_q == ToPorts ? packet_word_i : sent_word),
    .m_valid_o  (word_valid),
    .m_ready_i  (word_taken),
    .m_word_at_o(word_at),
    .m_data_o   (word),
    .m_keep_o,
    .m_last_o,
    .done_o     (send_done)
  );

  for (genvar port = 0; port < Ports; ++port) begin : g_outlet
    sw_outlet u_outlet (
      .clk_i,
      .rst_ni,
      .choose_i (chooses && address.port == 8'(port)),
      .address_i(address),
      .raw_i    (to_q == ToPorts),
      .sum_i    (ipv4_sum_so_far),
      .valid_i  (word_valid && round_q[port]),
      .word_at_i(word_at),
      .data_i   (word),
      .next_i   (word_taken),
      .taken_o  (taken[port]),
      .m_valid_o(m_valid_o[port]),
      .m_ready_i(m_ready_i[port]),
      .m_data_o (m_data_o[port])
    );
  end
  assign word_taken = (taken | ~round_q) == '1;

  assign packet_word_at_o = state_q inside {StWeigh, StRules, StStore} ? fetch_q : send_at;

  assign target = TargetBits'(lowest_of(MaxChildren'(targets_q)));
  assign leads_nowhere = 32'(address.port) >= Ports;
  assign gathers = state_q inside {StSeal, StTarget};
  assign waits_for_round = !leads_nowhere && round_q[PortBits'(address.port)];
  assign chooses = gathers && targets_q != '0 && !leads_nowhere && !waits_for_round;
  always_comb begin
    unique case (to_q)
      ToSource:   address = source;
      ToParent:   address = group.parent;
      ToChildren: address = child;
      default:    address = '{port: 8'(target), default: '0};
    endcase
  end

  // After a contribution is there.
  state_e after_store;
  always_comb begin
    after_store = StDone;
    if (state_q == StRules) begin
      if (complete) after_store = slot_next.empty ? StSeal : StReduce;
    end else if (complete_q) begin
      after_store = StReduce;
    end
  end

  // One after the other, if no table is to be written.
  logic takes;
  state_e first_state;
  assign takes = found_valid_i && !control_valid_i && state_q inside {StIdle, StDone};
  assign first_state = found_i.packet.verdict == VerdictPacket && found_i.job_found ? StWeigh : StSort;

  always_comb begin
    state_d = state_q;
    unique case (state_q)
      StIdle: begin
        if (init) begin
          state_d = StInit;
        end else if (takes) begin
          state_d = first_state;
        end
      end
      StInit: if (!slots_busy) state_d = StIdle;
      StSort: begin
        unique case (packet.verdict)
          VerdictMalformed, VerdictUndeliverable: state_d = StDone;
          VerdictPacket: state_d = header.kind == KindContribute ? StTarget : StDone;
          default: state_d = ports == '0 ? StDone : StTarget;
        endcase
      end
      StWeigh: if (&weighed_q) state_d = StRules;
      StRules: begin
        unique case (action)
          ActRefuse, ActPassRefusal: state_d = StSeal;
          ActStore: state_d = header.flags[EmptyFlagBit] ? after_store : StStore;
          ActTakeResult: state_d = header.flags[EmptyFlagBit] ? StTarget : StStore;
          ActResendResult, ActResendPartial: state_d = StTarget;
          default: state_d = StDone;
        endcase
      end
      StStore: begin
        if (copy_q == payload_words - 1'b1) begin
          state_d = header.kind == KindResult ? StTarget : after_store;
        end
      end
      StReduce: if (reduce_done) state_d = StSeal;
      StSeal: if (tag_valid) state_d = StTarget;
      StTarget: begin
        if (targets_q == '0 || waits_for_round) state_d = round_q == '0 ? StDone : StSend;
      end
      StSend: if (send_done) state_d = targets_q == '0 ? StDone : StTarget;
      default: state_d = takes ? first_state : StIdle;
    endcase
  end

  assign take_o = takes;
  assign packet_done_o = state_q == StDone;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      state_q <= StIdle;
      enters_q <= 1'b0;
      round_q <= '0;
    end else begin
      round_q <= send_done ? '0 : round_q | (Ports'(chooses) << address.port);
      state_q <= state_d;
      enters_q <= state_d != state_q;
    end
  end

  // Of a refusal, what it refuses, with another kind and a reason; or of what the slot has sent.
  header_t refusal, slot_header;
  always_comb begin
    slot_header = header_of(slot_next, group, header.slot);
    refusal = header;
    refusal.kind = KindRefuse;
    refusal.reason = found_q.job_found ? reason : ReasonUnknownJob;
  end

  always_ff @(posedge clk_i) begin
    if (takes) found_q <= found_i;
    weighed_q <= state_q == StWeigh ? weighed_q + 1'b1 : '0;
    // A word is there two cycles after it was asked for: when the first one is stored.
    copy_q <= state_q == StStore ? copy_q + 1'b1 : '0;
    fetch_q <= (state_q == StWeigh && &weighed_q) || state_q inside {StRules, StStore} ?
        fetch_q + 1'b1 : word_at_t'(HeadWords);
    unique case (state_q)
      StSort: begin
        to_q <= packet.verdict == VerdictPacket ? ToSource : ToPorts;
        targets_q <= packet.verdict == VerdictPacket ? Targets'(1) : Targets'(ports);
        out_q <= refusal;
        out_payload_q <= '0;
      end
      StRules: begin
        slot_q <= slot_next;
        complete_q <= complete;
        targets_q <= Targets'(1);
        out_payload_q <= '0;
        unique case (action)
          ActRefuse: begin
            out_q <= refusal;
            to_q <= ToSource;
          end
          ActPassRefusal: begin
            out_q <= header;
            out_q.child <= 16'(AllChildren);
            to_q <= ToChildren;
            targets_q <= Targets'(group.children);
          end
          ActResendResult: begin
            to_q <= ToChildren;
            targets_q <= Targets'(1) << header.child[TargetBits-1:0];
          end
          ActResendPartial: to_q <= ToParent;
          default: begin
            to_q <= group.root || header.kind == KindResult ? ToChildren : ToParent;
            targets_q <= group.root || header.kind == KindResult ? Targets'(group.children) :
                Targets'(1);
          end
        endcase
        if (!(action inside {ActRefuse, ActPassRefusal})) begin
          out_q <= slot_header;
          if (!slot_next.empty) out_payload_q <= bytes_t'(operand_bytes(slot_header));
        end
      end
      StSeal: begin
        if (tag_valid) out_q.tag <= tag;
      end
      default: ;
    endcase
    if (gathers && !waits_for_round) targets_q[target] <= 1'b0;
  end

endmodule
