// SPDX-License-Identifier: Apache-2.0
//
// Of a port: whether the packet there is a contribution of the first child of its group behind this
// port, so that it can be worked off together with those at other ports.
//
// joins_o: the packet is such a contribution, with the tag not looked at, and says the same as that of
// header_i (is_same_message). Of the inputs but asks_i it goes by those of one cycle before, and of those of
// tables and packets by what they have been for three cycles or more: asks_i is 1 while packet_i stays
// and tables are not written, and joins_o is 0 until it has been for three cycles. member_o is the same
// without header_i. The first child of group_at_o, if there_i, is child_i at address_i (sw_first).
module sw_member
  import sw_protocol_pkg::*;
  import sw_switch_pkg::*;
#(
  parameter  int unsigned Groups = 4,
  parameter  int unsigned Children = 16,
  localparam int unsigned GroupBits = $clog2(Groups),
  localparam int unsigned ChildBits = $clog2(Children)
) (
  input  logic                      clk_i,
  input  logic                      rst_ni,
  input  group_entry_t [Groups-1:0] groups_i,
  output logic [GroupBits-1:0]      group_at_o,
  input  logic                      there_i,
  input  logic [ChildBits-1:0]      child_i,
  input  address_t                  address_i,
  input  logic                      asks_i,
  input  packet_t                   packet_i,
  input  header_t                   header_i,
  output logic                      member_o,
  output logic                      joins_o
);

  // 1: the packet's group. 2: its first child here. 3: whether it is from that one.
  header_t header;
  logic [Groups-1:0] hits_q;
  logic found_q, is_child_q, is_same_q;
  logic [ChildBits-1:0] child_q;
  address_t address_q;
  logic [2:0] asks_q;
  assign header = packet_i.head.header;
  always_comb begin
    group_at_o = '0;
    for (int unsigned i = 0; i < Groups; ++i) if (hits_q[i]) group_at_o = GroupBits'(i);
  end

  always_ff @(posedge clk_i) begin
    for (int unsigned i = 0; i < Groups; ++i) begin
      hits_q[i] <= groups_i[i].valid && groups_i[i].job == header.job &&
          groups_i[i].group == header.group;
    end
    found_q <= hits_q != '0 && there_i;
    child_q <= child_i;
    address_q <= address_i;
    is_child_q <= found_q && packet_i.verdict == VerdictPacket && header.kind == KindContribute &&
        header.child == 16'(child_q) && address_q.ip == packet_i.head.source_ip &&
        address_q.udp_port == packet_i.head.source_port;
    is_same_q <= is_same_message(header, header_i);
  end
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      asks_q <= '0;
    end else begin
      asks_q <= asks_i ? {asks_q[1:0], 1'b1} : '0;
    end
  end
  assign member_o = asks_i && asks_q[2] && is_child_q;
  assign joins_o = member_o && is_same_q;

  logic unused_bits;
  assign unused_bits = ^{packet_i, groups_i, address_q};

endmodule
