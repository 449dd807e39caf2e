// SPDX-License-Identifier: Apache-2.0
//
// Of a port: the first child of each group that is behind it.
//
// A group's children are told one after the other, in the order of their numbers: clear_i, one cycle,
// before the first of a group, and put_i, one cycle, for each that is behind this port, with its number
// and its address; put_first_o if it is the first one. The group is scan_group_i. Groups are read
// without a clock: there_o, if there is a first child of group_at_i, address_o, that of address_group_at_i,
// and own_*, that of own_group_at_i.
//
// With FastClock scan_child_i and scan_address_i come a cycle later.
module sw_first
  import sw_switch_pkg::*;
#(
  parameter  int unsigned Groups = 4,
  parameter  int unsigned Children = 16,
  parameter  int unsigned FastClock = 0,
  localparam int unsigned GroupBits = $clog2(Groups),
  localparam int unsigned ChildBits = $clog2(Children)
) (
  input  logic                 clk_i,
  input  logic                 rst_ni,
  input  logic                 clear_i,
  input  logic                 put_i,
  input  logic [GroupBits-1:0] scan_group_i,
  input  logic [ChildBits-1:0] scan_child_i,
  input  address_t             scan_address_i,
  output logic                 put_first_o,
  input  logic [GroupBits-1:0] group_at_i,
  output logic                 there_o,
  input  logic [GroupBits-1:0] address_group_at_i,
  output address_t             address_o,
  input  logic [GroupBits-1:0] own_group_at_i,
  output logic                 own_there_o,
  output logic [ChildBits-1:0] own_child_o,
  output address_t             own_address_o
);

  typedef struct packed {
    logic [ChildBits-1:0] child;
    address_t             address;
  } entry_t;

  logic [Groups-1:0] there_q;
  entry_t entries[Groups], entry;

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
  logic writes;
  logic [GroupBits-1:0] write_at;
  sw_delay #(
    .Width (1 + GroupBits),
    .Cycles(FastClock)
  ) u_write (
    .clk_i,
    .value_i({put_first_o, scan_group_i}),
    .value_o({writes, write_at})
  );
  always_ff @(posedge clk_i) if (writes) entries[write_at] <= entry;

  assign there_o = there_q[group_at_i];
  assign address_o = entries[address_group_at_i].address;
  assign own_there_o = there_q[own_group_at_i];
  assign {own_child_o, own_address_o} = entries[own_group_at_i];

endmodule
