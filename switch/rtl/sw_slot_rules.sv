// SPDX-License-Identifier: Apache-2.0
//
// What a packet makes of its slot, and the switch do: the table of docs/switch-protocol.md, as
// switch/model/group.cc has it. What comes of the inputs, which stay, is there a cycle after them, or with
// FastClock two.
//
// The packet is one of the group's, from its child or its parent; slot_i is what the group has at
// its sequence modulo slots_i. slot_o is what the slot is from now on, if action_o is ActStore or
// ActTakeResult; with complete_o the stored contribution is the last one. counter_o is counted. Of a
// refusal of the packet's, reason_o is why. A refusal counts if its tag was made with the job's key,
// or same_tag_o: it is that of what was sent.
//
// others_i are children of whom contributions that say the same came with the packet, and present_i
// those with an operand. joins_o: all of these can be stored at once, as if one came after the other;
// of that, all_slot_o and all_complete_o are what slot_o and complete_o are of the packet alone.
module sw_slot_rules
  import sw_protocol_pkg::*;
  import sw_switch_pkg::*;
#(
  parameter int unsigned Children = 16,
  parameter int unsigned FastClock = 0
) (
  input  logic         clk_i,
  input  header_t      header_i,
  input  group_entry_t group_i,
  input  logic [15:0]  slots_i,
  input  slot_t        slot_i,
  input  logic [MaxChildren-1:0] others_i,
  input  logic [MaxChildren-1:0] present_i,
  output action_e      action_o,
  output counter_e     counter_o,
  output reason_e      reason_o,
  output logic         same_tag_o,
  output logic         complete_o,
  output slot_t        slot_o,
  output logic         joins_o,
  output logic         all_complete_o,
  output slot_t        all_slot_o
);

  localparam logic [MaxChildren-1:0] AllBits = '1 >> (MaxChildren - Children);

  // What the packet is to the slot.
  typedef struct packed {
    logic right_slot;
    logic too_large;
    logic same_message;
    logic same_tag;
    logic is_now;         // of the slot's sequence
    logic is_next;        // of the sequence that takes the slot next
    logic is_past;
    logic arrived_before;
    logic completes_now;  // it would be the last one of its sequence
    logic completes_next;
    logic all_complete_now;  // the same with the others
    logic all_complete_next;
    logic others_before;     // of one of them it has a contribution
    logic has_operands;   // the slot
    logic from_our_parents_child;
  } relation_t;

  relation_t to, to_q;
  logic [31:0] ahead;
  logic [MaxChildren-1:0] child_bit, all_bits;

  assign ahead = header_i.header_sequence - slot_i.sequence_number;
  assign to.is_now = ahead == '0;
  assign to.is_next = ahead == 32'(slots_i);
  assign to.is_past = ahead[31];
  assign to.too_large = operand_bytes(header_i) > 19'(group_i.operand_bytes);
  assign to.same_tag = header_i.tag == slot_i.tag;
  assign to.right_slot = header_i.slot == (header_i.header_sequence[15:0] & (slots_i - 16'd1));
  assign to.same_message = slot_i.burst == header_i.flags[BurstFlagBit] &&
      slot_i.last == header_i.flags[LastFlagBit] && slot_i.op == header_i.op[2:0] &&
      slot_i.element == header_i.header_type[1:0] && slot_i.count == header_i.count &&
      slot_i.offset == header_i.offset;
  assign child_bit = (MaxChildren'(1) << header_i.child[$clog2(MaxChildren)-1:0]) & AllBits;
  assign to.arrived_before = (slot_i.arrived & child_bit) != '0;
  assign to.completes_now = (slot_i.arrived | child_bit) == group_i.children;
  assign to.completes_next = child_bit == group_i.children;
  assign all_bits = child_bit | others_i;
  assign to.all_complete_now = (slot_i.arrived | all_bits) == group_i.children;
  assign to.all_complete_next = all_bits == group_i.children;
  assign to.others_before = (slot_i.arrived & others_i) != '0;
  assign to.has_operands = slot_i.present != '0;
  assign to.from_our_parents_child = header_i.child == group_i.parent_child ||
      header_i.child == 16'(AllChildren);

  logic begins;  // of what is stored: not is_now, for what is wide
  logic is_contribution_q, is_result_q;
  always_ff @(posedge clk_i) begin
    to_q <= to;
    is_contribution_q <= header_i.kind == KindContribute;
    is_result_q <= header_i.kind == KindResult;
    begins <= ahead != '0;
  end

  // A slot that is taken anew.
  slot_t begun;
  always_comb begin
    begun = '0;
    begun.state = SlotCollecting;
    begun.burst = header_i.flags[BurstFlagBit];
    begun.last = header_i.flags[LastFlagBit];
    begun.op = header_i.op[2:0];
    begun.element = header_i.header_type[1:0];
    begun.count = header_i.count;
    begun.offset = header_i.offset;
    begun.sequence_number = header_i.header_sequence;
  end

  slot_state_e complete_state;
  assign complete_state = group_i.root ? SlotResult : SlotSentUp;
  assign same_tag_o = to_q.same_tag;

  logic has_result;
  assign has_result = slot_i.state inside {SlotResult, SlotBeforeFirst};

  // What is done.
  action_e action;
  counter_e counter;
  reason_e reason;
  always_comb begin
    action = ActDrop;
    counter = CountStale;
    reason = ReasonNone;

    if (is_contribution_q) begin
      if (!to_q.right_slot) begin
        action = ActRefuse;
        reason = ReasonMismatch;
      end else if (to_q.too_large) begin
        action = ActRefuse;
        reason = ReasonTooLarge;
      end else if (to_q.is_next && has_result) begin
        action = ActStore;
      end else if (!to_q.is_now) begin
        counter = to_q.is_past ? CountStale : CountPremature;
      end else if (slot_i.state == SlotBeforeFirst) begin
        counter = CountPremature;
      end else if (slot_i.state == SlotResult) begin
        action = ActResendResult;
      end else if (slot_i.state == SlotSentUp) begin
        action = ActResendPartial;
      end else if (!to_q.same_message) begin
        action = ActRefuse;
        reason = ReasonMismatch;
      end else if (to_q.arrived_before) begin
        counter = CountDuplicates;
      end else begin
        action = ActStore;
      end
    end else if (is_result_q) begin
      if (!to_q.right_slot || !to_q.is_now || slot_i.state != SlotSentUp) begin
        // What was asked for twice comes twice.
        counter = to_q.is_now && has_result ? CountDuplicates : CountStale;
      end else if (!to_q.same_message) begin
        counter = CountMismatched;
      end else begin
        action = ActTakeResult;
      end
    end else begin
      if (to_q.is_now && slot_i.state == SlotSentUp && to_q.from_our_parents_child) begin
        action = ActPassRefusal;
      end
    end

    unique case (action)
      ActRefuse:        counter = CountRefused;
      ActStore:         counter = CountOperands;
      ActResendResult:  counter = CountResentResults;
      ActResendPartial: counter = CountResentPartials;
      ActTakeResult:    counter = CountResults;
      ActPassRefusal:   counter = CountRefusals;
      default: ;
    endcase
  end

  logic [$bits(action_e)-1:0] action_bits;
  logic [$bits(counter_e)-1:0] counter_bits;
  logic [$bits(reason_e)-1:0] reason_bits;
  sw_delay #(
    .Width ($bits(action_e) + $bits(counter_e) + $bits(reason_e)),
    .Cycles(FastClock)
  ) u_action (
    .clk_i,
    .value_i({action, counter, reason}),
    .value_o({action_bits, counter_bits, reason_bits})
  );
  assign action_o = action_e'(action_bits);
  assign counter_o = counter_e'(counter_bits);
  assign reason_o = reason_e'(reason_bits);

  // What comes of it for the slot. Of what is not stored nor taken, slot_o is of no interest.
  always_comb begin
    slot_o = begins ? begun : slot_i;
    if (is_contribution_q) begin
      slot_o.arrived |= child_bit;
      if (!header_i.flags[EmptyFlagBit]) slot_o.present |= child_bit;
    end
    all_slot_o = slot_o;
    all_slot_o.arrived |= others_i;
    all_slot_o.present |= present_i;
    complete_o = action_o == ActStore && (begins ? to_q.completes_next : to_q.completes_now);
    if (complete_o) begin
      slot_o.state = complete_state;
      slot_o.empty = header_i.flags[EmptyFlagBit] && (begins || !to_q.has_operands);
    end
    all_complete_o = begins ? to_q.all_complete_next : to_q.all_complete_now;
    if (all_complete_o) begin
      all_slot_o.state = complete_state;
      all_slot_o.empty = header_i.flags[EmptyFlagBit] && present_i == '0 &&
          (begins || !to_q.has_operands);
    end
    joins_o = action_o == ActStore && others_i != '0 && (begins || !to_q.others_before);
    if (action_o == ActTakeResult) begin
      slot_o.state = SlotResult;
      slot_o.empty = header_i.flags[EmptyFlagBit];
      slot_o.tag = header_i.tag;
    end
  end

  logic unused_header;
  assign unused_header = ^{header_i.version, header_i.zero, header_i.job, header_i.group,
      header_i.reason, header_i.op[7:3], header_i.header_type[7:2], header_i.flags[7:4]};
  logic unused_group;
  assign unused_group = ^{group_i.valid, group_i.job, group_i.group, group_i.parent,
      group_i.window, group_i.first};

endmodule
