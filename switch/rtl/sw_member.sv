// SPDX-License-Identifier: Apache-2.0
//
// Of a port: the first child of each group that is behind it; and whether the packet there is a
// contribution of that one, so that it can be worked off together with those at other ports.
//
// A group's children are told one after the other, in the order of their numbers: clear_i, one cycle,
// before the first of a group, and put_i, one cycle, for each that is behind this port, with its number
// and its address; put_first_o if it is the first one. The group is scan_group_i.
//
// joins_o: the packet is such a contribution, with the tag not looked at, and says the same as that of
// header_i (is_same_message). Of the inputs but asks_i it goes by those of one cycle before, and of those of
// tables and packets by what they have been for three cycles or more: asks_i is 1 while packet_i stays
// and tables are not written, and joins_o is 0 until it has been for three cycles. member_o is the same
// without header_i. there_o and address_o are the first child of group_at_i, if there is one, without a
// clock.
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
  input  logic                      clear_i,
  input  logic                      put_i,
  input  logic [GroupBits-1:0]      scan_group_i,
  input  logic [ChildBits-1:0]      scan_child_i,
  input  address_t                  scan_address_i,
  output logic                      put_first_o,
  input  group_entry_t [Groups-1:0] groups_i,
  input  logic                      asks_i,
  input  packet_t                   packet_i,
  input  header_t                   header_i,
  output logic                      member_o,
  output logic                      joins_o,
  input  logic [GroupBits-1:0]      group_at_i,
  output logic                      there_o,
  output address_t                  address_o
);

  typedef struct packed {
    logic [ChildBits-1:0] child;
    address_t             address;
  } entry_t;

  logic [Groups-1:0] there_q;
  entry_t entries[Groups], entry, entry_q;
  header_t header;
  assign header = packet_i.head.header;

  assign entry.child = scan_child_i;
  assign entry.address = scan_address_i;
  assign put_first_o = put_i && !there_q[scan_group_i];
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      there_q <= '0;
    end else if (clear_i) begin
      there_q[scan_group_i] <= 1'b0;
    end else if (put_i) begin
      there_q[scan_group_i] <= 1'b1;
    end
  end
  always_ff @(posedge clk_i) if (put_first_o) entries[scan_group_i] <= entry;

  assign there_o = there_q[group_at_i];
  assign address_o = entries[group_at_i].address;

  // 1: the packet's group. 2: its first child here. 3: whether it is from that one.
  logic [Groups-1:0] hits_q;
  logic [GroupBits-1:0] group_at;
  logic found_q, is_child_q, is_same_q;
  logic [2:0] asks_q;
  always_comb begin
    group_at = '0;
    for (int unsigned i = 0; i < Groups; ++i) if (hits_q[i]) group_at = GroupBits'(i);
  end

  always_ff @(posedge clk_i) begin
    for (int unsigned i = 0; i < Groups; ++i) begin
      hits_q[i] <= groups_i[i].valid && groups_i[i].job == header.job &&
          groups_i[i].group == header.group;
    end
    found_q <= hits_q != '0 && there_q[group_at];
    entry_q <= entries[group_at];
    is_child_q <= found_q && packet_i.verdict == VerdictPacket && header.kind == KindContribute &&
        header.child == 16'(entry_q.child) && entry_q.address.ip == packet_i.head.source_ip &&
        entry_q.address.udp_port == packet_i.head.source_port;
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
  assign unused_bits = ^{packet_i, groups_i, entry_q.address};

endmodule
