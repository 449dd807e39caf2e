// SPDX-License-Identifier: Apache-2.0
//
// What is to be sent for a packet: of a refusal, what it refuses, with another kind and a reason; or what
// its slot has sent, or will; or somebody else's frame as it is.
//
// sorts_i: the packet is none of a known job, and action_i is nothing. Else action_i, reason_i and slot_i
// are what comes of it (sw_judge), number slot_at_i. With FastClock answer_o is there in the cycle after
// that of sorts_i and action_i, in which all else stays.
module sw_answer
  import sw_protocol_pkg::*;
  import sw_switch_pkg::*;
#(
  parameter int unsigned FastClock = 0
) (
  input  logic        clk_i,
  input  found_t      found_i,
  input  address_t    source_i,
  input  logic        sorts_i,
  input  action_e     action_i,
  input  reason_e     reason_i,
  input  slot_t       slot_i,
  input  logic [15:0] slot_at_i,
  output answer_t     answer_o
);

  packet_t packet;
  header_t header, slot_header;
  group_entry_t group;
  assign packet = found_i.packet;
  assign header = packet.head.header;
  assign group = found_i.group;
  assign slot_header = header_of(slot_i, group, header.slot);

  typedef struct packed {
    logic unknown;
    logic of_others;
    logic refused;
    logic passed_on;
    logic result_again;
    logic partial_again;
    logic result;
    logic for_children;
  } is_t;
  is_t is_now, is;
  always_comb begin
    is_now.unknown = sorts_i && packet.verdict == VerdictPacket;
    is_now.of_others = sorts_i && packet.verdict != VerdictPacket;
    is_now.refused = action_i == ActRefuse;
    is_now.passed_on = action_i == ActPassRefusal;
    is_now.result_again = action_i == ActResendResult;
    is_now.partial_again = action_i == ActResendPartial;
    is_now.result = action_i == ActTakeResult;
    is_now.for_children = group.root || header.kind == KindResult;
  end
  sw_delay #(
    .Width ($bits(is_t)),
    .Cycles(FastClock)
  ) u_is (
    .clk_i,
    .value_i(is_now),
    .value_o(is)
  );

  always_comb begin
    answer_o = '0;
    answer_o.to = ToSource;
    answer_o.header = header;
    answer_o.targets = MaxPorts'(1);
    answer_o.source = source_i;
    answer_o.group_at = found_i.group_at;
    answer_o.job_at = found_i.job_at;
    answer_o.inlet = found_i.inlet;
    answer_o.slot_at = slot_at_i;
    answer_o.op = slot_i.op;
    answer_o.element = slot_i.element;
    answer_o.present = slot_i.present;
    if (is.unknown) begin
      answer_o.header.kind = KindRefuse;
      answer_o.header.reason = ReasonUnknownJob;
    end else if (is.of_others) begin
      answer_o.to = ToPorts;
      answer_o.bytes = packet.bytes;
      answer_o.targets = found_i.ports;
    end else if (is.refused) begin
      answer_o.header.kind = KindRefuse;
      answer_o.header.reason = reason_i;
      answer_o.seals = 1'b1;
    end else if (is.passed_on) begin
      answer_o.to = ToChildren;
      answer_o.header.child = 16'(AllChildren);
      answer_o.all = 1'b1;
      answer_o.seals = 1'b1;
    end else begin
      answer_o.header = slot_header;
      answer_o.has_slot = 1'b1;
      if (!slot_i.empty) answer_o.bytes = bytes_t'(operand_bytes(slot_header));
      answer_o.to = is.for_children ? ToChildren : ToParent;
      answer_o.all = is.for_children;
      if (is.result_again) begin
        answer_o.to = ToChildren;
        answer_o.all = 1'b0;
        answer_o.targets = MaxPorts'(1) << header.child[$clog2(MaxChildren)-1:0];
      end else if (is.partial_again) begin
        answer_o.to = ToParent;
        answer_o.all = 1'b0;
      end else if (is.result) begin
        answer_o.takes = !slot_i.empty;
        answer_o.writes_tag = 1'b1;
      end else begin
        answer_o.reduces = !slot_i.empty;
        answer_o.seals = 1'b1;
        answer_o.writes_tag = 1'b1;
      end
    end
  end

  logic unused_bits;
  assign unused_bits = ^{found_i, slot_i, group};

endmodule
