// SPDX-License-Identifier: Apache-2.0
//
// Where frames for others go: to the port that leads to their destination, and if none is known, or it
// is a group of hosts, to all ports; never back to the port they came from. What is for the switch
// itself goes to the processor beside it.
//
// Written like sw_group_table; what has been found is there a cycle later.
module sw_forward_table
  import sw_switch_pkg::*;
#(
  parameter  int unsigned Ports = 18,
  parameter  int unsigned Entries = 32,
  parameter  int unsigned FastClock = 0,
  localparam int unsigned EntryBits = $clog2(Entries),
  localparam int unsigned PortBits = $clog2(Ports)
) (
  input  logic                  clk_i,
  input  logic                  rst_ni,
  input  logic                  write_i,
  input  logic [15:0]           index_i,
  input  logic [RecordBits-1:0] record_i,
  input  logic [47:0]           own_mac_i,
  input  logic [7:0]            control_port_i,
  input  logic [PortBits-1:0]   from_i,
  input  logic [47:0]           mac_i,
  output logic [Ports-1:0]      ports_o
);

  forward_entry_t [Entries-1:0] entries_q;
  forward_entry_t record;
  logic unused_record;
  assign record = record_i[$bits(forward_entry_t)-1:0];
  assign unused_record = ^record_i[RecordBits-1:$bits(forward_entry_t)];

  // Which entry is written; with FastClock from a register, as it enables what is wide.
  logic [Entries-1:0] writes, named;
  for (genvar i = 0; i < Entries; ++i) begin : g_entry
    assign named[i] = write_i && EntryBits'(index_i) == EntryBits'(i);
  end
  sw_delay_flags #(
    .Width (Entries),
    .Cycles(FastClock)
  ) u_writes (
    .clk_i,
    .rst_ni,
    .flags_i(named),
    .flags_o(writes)
  );

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      for (int unsigned i = 0; i < Entries; ++i) entries_q[i].valid <= 1'b0;
    end else begin
      for (int unsigned i = 0; i < Entries; ++i) if (writes[i]) entries_q[i] <= record;
    end
  end

  logic [Entries-1:0] hits_q;
  logic own_q;
  always_ff @(posedge clk_i) begin
    for (int unsigned i = 0; i < Entries; ++i) begin
      hits_q[i] <= entries_q[i].valid && entries_q[i].mac == mac_i;
    end
    own_q <= mac_i == own_mac_i;
  end

  always_comb begin
    ports_o = '1;
    for (int unsigned i = 0; i < Entries; ++i) begin
      if (hits_q[i]) ports_o = Ports'(1) << entries_q[i].port;
    end
    if (own_q) ports_o = Ports'(1) << control_port_i;
    ports_o[from_i] = 1'b0;
  end

  index_is_in_the_table :
  assert property (@(posedge clk_i) disable iff (!rst_ni) write_i |->
      32'(index_i) < Entries && (!record.valid || 32'(record.port) < Ports));

endmodule
