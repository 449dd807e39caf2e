// SPDX-License-Identifier: Apache-2.0
//
// What is to be done with a packet: who says it and with what key, and then, by the rules of its slot
// (sw_slot_rules), what.
//
// What comes of the inputs is there two cycles after them, of authentic_i and others_authentic_i without
// a clock; with FastClock, two cycles later, and one. slot_o is what the slot is from now on, if action_o is
// ActStore or ActTakeResult; with complete_o the stored contribution is the last one. Of a refusal,
// reason_o is why. touches_o: the packet is one of the group's. others_i are children of whom contributions that say the same came with
// the packet, and present_i those with an operand; joined_o: they are stored with it.
module sw_judge
  import sw_protocol_pkg::*;
  import sw_switch_pkg::*;
#(
  parameter int unsigned Children = 16,
  parameter int unsigned FastClock = 0
) (
  input  logic         clk_i,
  input  header_t      header_i,
  input  address_t     source_i,
  input  logic         authentic_i,
  input  logic         group_found_i,
  input  group_entry_t group_i,
  input  address_t     child_i,  // whom the packet names
  input  slot_t        slot_i,
  input  logic [Children-1:0] others_i,
  input  logic [Children-1:0] present_i,
  input  logic         others_authentic_i,
  output action_e      action_o,
  output counter_e     counter_o,
  output reason_e      reason_o,
  output logic         complete_o,
  output logic         touches_o,
  output logic         joined_o,
  output slot_t        slot_o
);

  action_e action, action_q;
  counter_e counter, counter_q;
  reason_e reason, reason_q;
  logic complete, complete_q, all_complete, all_complete_q, joins, joins_q, same_tag, is_unlike_q;
  slot_t slot, slot_q, all_slot, all_slot_q;

  sw_slot_rules #(
    .Children(Children),
    .FastClock(FastClock)
  ) u_slot_rules (
    .clk_i,
    .header_i,
    .group_i,
    .slots_i   (group_i.window * 16'(SlotsPerWindow)),
    .slot_i,
    .others_i  (MaxChildren'(others_i)),
    .present_i (MaxChildren'(present_i)),
    .action_o  (action),
    .counter_o (counter),
    .reason_o  (reason),
    .same_tag_o(same_tag),
    .complete_o(complete),
    .slot_o    (slot),
    .joins_o   (joins),
    .all_complete_o(all_complete),
    .all_slot_o(all_slot)
  );

  // Who may say something about a slot at all.
  logic is_there_q, is_child_q, is_parent_q, has_no_tag_q, is_contribution_q, is_refusal_q;
  address_t child_q;

  always_ff @(posedge clk_i) begin
    is_contribution_q <= header_i.kind == KindContribute;
    is_refusal_q <= header_i.kind == KindRefuse;
    has_no_tag_q <= header_i.kind == KindRefuse && header_i.reason == ReasonUnknownJob;
    is_there_q <= header_i.child < 16'(Children) &&
        group_i.children[header_i.child[$clog2(MaxChildren)-1:0]];
    child_q <= child_i;
    is_child_q <= is_there_q && is_at(child_q, source_i);
    is_parent_q <= !group_i.root && is_at(group_i.parent, source_i);
    action_q <= action;
    counter_q <= counter;
    reason_q <= reason;
    is_unlike_q <= action == ActPassRefusal && !same_tag;
    complete_q <= complete;
    slot_q <= slot;
    joins_q <= joins;
    all_complete_q <= all_complete;
    all_slot_q <= all_slot;
  end

  typedef struct packed {
    action_e  action;
    counter_e counter;
    reason_e  reason;
    logic     complete;
    logic     touches;
    logic     joined;
    slot_t    slot;
  } verdict_t;

  verdict_t verdict, said;
  always_comb begin
    verdict.action = ActDrop;
    verdict.counter = counter_q;
    verdict.reason = reason_q;
    verdict.complete = 1'b0;
    verdict.touches = 1'b0;
    verdict.joined = 1'b0;
    if (!authentic_i && !has_no_tag_q) begin
      verdict.counter = CountBadTag;
    end else if (!group_found_i) begin
      verdict.counter = CountUnknownGroup;
      if (is_contribution_q) begin
        verdict.action = ActRefuse;
        verdict.counter = CountRefused;
        verdict.reason = ReasonUnknownGroup;
      end
    end else if (is_contribution_q ? !is_child_q : !is_parent_q) begin
      verdict.counter = CountWrongSource;
    end else if (is_unlike_q && !authentic_i) begin
      // A parent without the key repeats the tag of what was sent to it.
      verdict.counter = CountBadTag;
    end else begin
      verdict.action = action_q;
      verdict.joined = joins_q && others_authentic_i;
      verdict.complete = verdict.joined ? all_complete_q : complete_q;
      verdict.touches = !is_refusal_q;
    end
  end
  assign verdict.slot = joins_q && others_authentic_i ? all_slot_q : slot_q;

  if (FastClock != 0) begin : g_later
    verdict_t verdict_q;
    always_ff @(posedge clk_i) verdict_q <= verdict;
    assign said = verdict_q;
  end else begin : g_now
    assign said = verdict;
  end
  assign action_o = said.action;
  assign counter_o = said.counter;
  assign reason_o = said.reason;
  assign complete_o = said.complete;
  assign touches_o = said.touches;
  assign joined_o = said.joined;
  assign slot_o = said.slot;

endmodule
