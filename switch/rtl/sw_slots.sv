// SPDX-License-Identifier: Apache-2.0
//
// What is known of the slots of all groups, and the rules by which it changes. A group has
// 2 * Window slots here, of which it uses twice its own window.
//
// slot_o is what lies at the group's slot of the sequence, two cycles after both are there, as long as
// they stay. write_i puts slot_i there, but for its tag: that comes with write_tag_i, for any slot. init_i, with no packet under way, makes all slots of a group
// with this record as if the round before the first were over, and takes 2 * Window + 1 cycles, in which
// busy_o is 1.
module sw_slots
  import sw_protocol_pkg::*;
  import sw_switch_pkg::*;
#(
  parameter  int unsigned Groups = 4,
  parameter  int unsigned Window = 16,
  localparam int unsigned Slots = SlotsPerWindow * Window,
  localparam int unsigned SlotBits = $clog2(Slots),
  localparam int unsigned GroupBits = $clog2(Groups),
  localparam int unsigned AtBits = GroupBits + SlotBits
) (
  input  logic                 clk_i,
  input  logic                 rst_ni,
  input  logic                 init_i,
  input  logic [GroupBits-1:0] init_group_i,
  input  group_entry_t         init_record_i,
  output logic                 busy_o,
  input  logic [GroupBits-1:0] group_at_i,
  input  logic [15:0]          window_i,
  input  logic [SlotBits-1:0]  sequence_i,  // its low bits
  output logic [AtBits-1:0]    at_o,
  output slot_t                slot_o,
  input  logic                 write_i,
  input  slot_t                slot_i,
  input  logic                 write_tag_i,
  input  logic [AtBits-1:0]    tag_at_i,
  input  logic [63:0]          tag_i
);

  if (1 << SlotBits != Slots) begin : g_bad_window
    $error("a window is a power of two");
  end

  localparam int unsigned TagBits = $bits(slot_i.tag);
  localparam int unsigned StateBits = $bits(slot_t) - TagBits;  // its tag is the last of it

  // Few words, and wide: memories made of tables would lie far from each other. What is written is not read
  // in the same cycle, or the reader does not look.
  (* ram_style = "block", no_rw_check *) logic [StateBits-1:0] slots[Groups * Slots];
  (* ram_style = "block", no_rw_check *) logic [TagBits-1:0] tags[Groups * Slots];
  logic [StateBits-1:0] read_q;
  logic [TagBits-1:0] tag_q;
  logic busy_q, writes_q;  // a slot is made, and written a cycle later
  logic [AtBits-1:0] init_at_q, fresh_at_q;
  slot_t fresh_q;
  logic [15:0] init_slots_q;
  logic [31:0] first_q;
  slot_t fresh;

  assign at_o = {group_at_i, sequence_i & SlotBits'(window_i * 16'(SlotsPerWindow) - 16'd1)};
  assign busy_o = busy_q || writes_q;

  always_comb begin
    fresh = '0;
    fresh.state = SlotBeforeFirst;
    // The last one before the first that has its slot here.
    fresh.sequence_number = first_q - 32'(init_slots_q) +
        ((32'(init_at_q[SlotBits-1:0]) - first_q) & (32'(init_slots_q) - 32'd1));
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      {busy_q, writes_q} <= '0;
    end else begin
      busy_q <= init_i || (busy_q && !(&init_at_q[SlotBits-1:0]));
      writes_q <= busy_q;
    end
  end

  always_ff @(posedge clk_i) begin
    if (init_i) begin
      init_at_q <= {init_group_i, SlotBits'(0)};
      init_slots_q <= init_record_i.window * 16'(SlotsPerWindow);
      first_q <= init_record_i.first;
    end else if (busy_q) begin
      init_at_q <= init_at_q + 1'b1;
    end
    {fresh_q, fresh_at_q} <= {fresh, init_at_q};
    if (writes_q) begin
      slots[fresh_at_q] <= fresh_q[TagBits+:StateBits];
    end else if (write_i) begin
      slots[at_o] <= slot_i[TagBits+:StateBits];
    end
    if (write_tag_i) tags[tag_at_i] <= tag_i;
    read_q <= slots[at_o];
    tag_q <= tags[at_o];
    slot_o <= {read_q, tag_q};
  end

  logic unused_record;
  assign unused_record = ^{init_record_i, slot_i.tag, fresh_q.tag};

  no_write_while_busy :
  assert property (@(posedge clk_i) disable iff (!rst_ni) busy_o |-> !write_i && !init_i);

endmodule
