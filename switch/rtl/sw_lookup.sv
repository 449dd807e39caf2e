// SPDX-License-Identifier: Apache-2.0
//
// The packet that is next, of those at all inlets, and what the tables know of it: found while the
// engine still works on the one before.
//
// An inlet asks (asks_i) when its packet will be checked in a few cycles, or is, and is not the
// engine's already. found_o is that of the inlet whose turn it is, when ready_o is 1. If each port has
// one of its own, it comes with the others that say the same (sw_member), if it is of the first child
// behind its port itself. take_i is the
// engine's, in a cycle in which ready_o is 1. With FastClock found_o stays from then to over_i, one cycle,
// as long as the inlet keeps the packet; the next one is looked for after that. Tables are written by write_i, never in a cycle with
// take_i, nor while busy_o is 1; again_o is 1 for the cycle of a write after which what was found, and
// checked, counts no more. With FastClock that is the cycle after write_i, in which the tables are written: until
// then the record stays.
module sw_lookup
  import sw_protocol_pkg::MaxChildren;
  import sw_switch_pkg::*;
#(
  parameter  int unsigned Ports = 18,
  parameter  int unsigned Inlets = Ports,
  parameter  int unsigned Children = 16,
  parameter  int unsigned Jobs = 4,
  parameter  int unsigned Groups = 4,
  parameter  int unsigned ForwardEntries = 32,
  parameter  int unsigned Window = 16,
  parameter  int unsigned OperandBytes = 1408,
  parameter  int unsigned FastClock = 0,
  localparam int unsigned GroupBits = $clog2(Groups),
  localparam int unsigned ChildBits = $clog2(Children),
  localparam int unsigned JobBits = $clog2(Jobs),
  localparam int unsigned InletBits = Inlets > 1 ? $clog2(Inlets) : 1
) (
  input  logic                  clk_i,
  input  logic                  rst_ni,
  input  logic [47:0]           own_mac_i,
  input  logic [7:0]            control_port_i,
  input  logic                  write_i,
  input  table_e                table_i,
  input  logic [15:0]           index_i,
  input  logic [RecordBits-1:0] record_i,
  output logic                  again_o,
  output logic                  busy_o,
  output job_entry_t [Jobs-1:0] jobs_o,
  input  logic [Inlets-1:0]     asks_i,
  input  packet_t [Inlets-1:0]  packets_i,
  input  logic [Inlets-1:0][7:0] from_i,  // their ports
  input  logic                  take_i,
  input  logic                  over_i,  // with FastClock
  output logic                  ready_o,
  output found_t                found_o,
  // Of a group's children, one, and of another's, with its parent; a job's key; and that something came of
  // the first.
  input  logic [GroupBits-1:0]  child_group_at_i,
  input  logic [15:0]           child_i,
  output address_t              child_o,
  input  logic [GroupBits-1:0]  target_group_at_i,
  input  logic [15:0]           target_i,
  output address_t              target_o,
  output address_t              target_parent_o,
  input  logic [JobBits-1:0]    key_at_i,
  output logic [127:0]          key_o,
  // The first child of a group behind each port, and the children that are no such, without a clock.
  input  logic [GroupBits-1:0]  first_group_at_i,
  output logic [Ports-1:0]      first_there_o,
  input  logic [GroupBits-1:0]  address_group_at_i,
  output address_t [Ports-1:0]  first_o,
  output logic [Children-1:0]   not_first_o,
  input  logic                  touch_i,
  output logic [Groups-1:0]     touched_o
);

  // Since an inlet was chosen: its packet is being copied; looked up; and found. With FastClock it is in
  // registers a cycle later.
  logic chosen_q, copied_q, found_q, lets_go;
  found_t found;
  logic [InletBits-1:0] inlet_q, turn;
  logic [Inlets-1:0] is_inlet_q;
  logic [7:0] port_q;
  packet_t packet_q, packet;
  logic chooses;

  // With FastClock a cycle late: those that were taken meanwhile ask no more.
  logic [Inlets-1:0] asks;
  if (FastClock != 0) begin : g_later
    logic [Inlets-1:0] asks_q;
    always_ff @(posedge clk_i or negedge rst_ni) begin
      if (!rst_ni) begin
        asks_q <= '0;
      end else begin
        asks_q <= take_i || again_o ? '0 : asks_i;
      end
    end
    assign asks = asks_q;
  end else begin : g_now
    assign asks = asks_i;
  end

  // With FastClock a write is a cycle late, too.
  logic write, tables_busy;
  sw_delay_flags #(
    .Width (2),
    .Cycles(FastClock)
  ) u_write (
    .clk_i,
    .rst_ni,
    .flags_i({write_i, write_i && table_i inside {TableJobs, TableGroups, TableForward}}),
    .flags_o({write, again_o})
  );
  assign busy_o = tables_busy || (FastClock != 0 && write);

  assign chooses = !chosen_q && asks != '0 && !again_o && !busy_o;
  if (FastClock != 0) begin : g_stays
    // Of what is known, but for the packet itself, which stays in front of it.
    logic ready_q, taken_q;
    found_t said_q;
    always_ff @(posedge clk_i or negedge rst_ni) begin
      if (!rst_ni) begin
        {ready_q, taken_q} <= '0;
      end else if (lets_go) begin
        {ready_q, taken_q} <= '0;
      end else begin
        ready_q <= found_q && !take_i && !taken_q;
        taken_q <= taken_q || take_i;
      end
    end
    always_ff @(posedge clk_i) begin
      said_q <= found;
      if (take_i || taken_q) said_q.others <= said_q.others;
    end
    always_comb begin
      found_o = said_q;
      found_o.packet = packet_q;
      found_o.port = port_q;
      found_o.inlet = 8'(inlet_q);
    end
    assign lets_go = over_i || again_o;
    assign ready_o = ready_q;
    logic unused_said;
    assign unused_said = ^said_q;
  end else begin : g_goes
    logic unused_over;
    assign unused_over = over_i;
    assign found_o = found;
    assign lets_go = take_i || again_o;
    assign ready_o = found_q;
  end

  sw_round_robin #(
    .Ports(Inlets)
  ) u_round_robin (
    .clk_i,
    .rst_ni,
    .asks_i(asks),
    .take_i(chooses),
    .turn_o(turn)
  );

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      {chosen_q, copied_q, found_q} <= '0;
    end else if (lets_go) begin
      {chosen_q, copied_q, found_q} <= '0;
    end else begin
      chosen_q <= chosen_q || chooses;
      copied_q <= chosen_q;
      found_q <= copied_q;
    end
  end
  always_ff @(posedge clk_i) begin
    if (chooses) inlet_q <= turn;
    if (chooses) is_inlet_q <= Inlets'(1) << turn;
    packet_q <= packet;
    port_q <= from_i[inlet_q];
  end

  always_comb begin
    packet = '0;
    for (int unsigned i = 0; i < Inlets; ++i) if (is_inlet_q[i]) packet |= packets_i[i];
  end

  logic [GroupBits-1:0] group_at, scan_group;
  logic [JobBits-1:0] job_at;
  logic [ChildBits-1:0] scan_child;
  logic [Ports-1:0] ports, puts, put_first;
  logic [Inlets-1:0] members, joins;
  group_entry_t [Groups-1:0] groups;
  address_t scan_address;
  logic clear;

  sw_group_table #(
    .Ports(Ports),
    .Jobs(Jobs),
    .Groups(Groups),
    .Children(Children),
    .Window(Window),
    .OperandBytes(OperandBytes),
    .FastClock(FastClock)
  ) u_group_table (
    .clk_i,
    .rst_ni,
    .write_i,
    .table_i,
    .index_i,
    .record_i,
    .busy_o       (tables_busy),
    .clear_o      (clear),
    .put_o        (puts),
    .scan_group_o (scan_group),
    .scan_child_o (scan_child),
    .scan_address_o(scan_address),
    .put_first_i  (put_first != '0),
    .jobs_o,
    .groups_o     (groups),
    .job_i        (packet_q.head.header.job),
    .group_i      (packet_q.head.header.group),
    .job_found_o  (found.job_found),
    .job_at_o     (job_at),
    .group_found_o(found.group_found),
    .group_at_o   (group_at),
    .group_o      (found.group),
    .child_group_at_i,
    .child_i,
    .child_o,
    .target_group_at_i,
    .target_i,
    .target_o,
    .target_parent_o,
    .key_at_i,
    .key_o,
    .not_first_group_at_i(first_group_at_i),
    .not_first_o,
    .touch_i,
    .touched_o
  );

  // The first child behind each port, of any group, and of that of the packet there.
  logic [Ports-1:0][GroupBits-1:0] own_group_at;
  logic [Ports-1:0][ChildBits-1:0] own_child;
  logic [Ports-1:0] own_there;
  address_t [Ports-1:0] own_address;
  logic [ChildBits-1:0] put_child;
  address_t put_address;
  sw_delay #(
    .Width (ChildBits + $bits(address_t)),
    .Cycles(FastClock)
  ) u_put (
    .clk_i,
    .value_i({scan_child, scan_address}),
    .value_o({put_child, put_address})
  );
  for (genvar port = 0; port < Ports; ++port) begin : g_first
    sw_first #(
      .Groups(Groups),
      .Children(Children),
      .FastClock(FastClock)
    ) u_first (
      .clk_i,
      .rst_ni,
      .clear_i       (clear),
      .put_i         (puts[port]),
      .scan_group_i  (scan_group),
      .scan_child_i  (put_child),
      .scan_address_i(put_address),
      .put_first_o   (put_first[port]),
      .group_at_i    (first_group_at_i),
      .there_o       (first_there_o[port]),
      .address_group_at_i,
      .address_o     (first_o[port]),
      .own_group_at_i(own_group_at[port]),
      .own_there_o   (own_there[port]),
      .own_child_o   (own_child[port]),
      .own_address_o (own_address[port])
    );
  end

  if (Inlets == Ports) begin : g_members
    for (genvar port = 0; port < Ports; ++port) begin : g_member
      sw_member #(
        .Groups(Groups),
        .Children(Children)
      ) u_member (
        .clk_i,
        .rst_ni,
        .groups_i  (groups),
        .group_at_o(own_group_at[port]),
        .there_i   (own_there[port]),
        .child_i   (own_child[port]),
        .address_i (own_address[port]),
        .asks_i    (asks_i[port] && !busy_o),
        .packet_i  (packets_i[port]),
        .header_i  (packet_q.head.header),
        .member_o  (members[port]),
        .joins_o   (joins[port])
      );
    end
  end else begin : g_one_by_one
    logic unused_own;
    assign {own_group_at, members, joins} = '0;
    assign unused_own = ^{own_there, own_child, own_address, groups};
  end

  sw_forward_table #(
    .Ports(Ports),
    .Entries(ForwardEntries),
    .FastClock(FastClock)
  ) u_forward_table (
    .clk_i,
    .rst_ni,
    .write_i (write_i && table_i == TableForward),
    .index_i,
    .record_i,
    .own_mac_i,
    .control_port_i,
    .from_i  ($clog2(Ports)'(port_q)),
    .mac_i   (packet_q.head.destination_mac),
    .ports_o (ports)
  );

  // None, if the processor's port is not there.
  logic [Ports-1:0] control_port;
  assign control_port = Ports'(1) << control_port_i;

  assign found.packet = packet_q;
  assign found.port = port_q;
  assign found.inlet = 8'(inlet_q);
  assign found.group_at = 16'(group_at);
  assign found.job_at = 16'(job_at);
  always_comb begin
    found.ports = MaxPorts'(ports);
    if (packet_q.verdict == VerdictControl) begin
      found.ports = MaxPorts'(control_port) & ~(MaxPorts'(1) << port_q);
    end
    found.leads = found.ports != '0;
    found.others = '0;
    if (found.job_found && (members & is_inlet_q) != '0) begin
      found.others[Inlets-1:0] = joins & ~is_inlet_q;
    end
  end

  if (FastClock != 0) begin : g_over
    over_what_is_taken :
    assert property (@(posedge clk_i) disable iff (!rst_ni) over_i |-> g_stays.taken_q);
  end
  take_what_is_ready :
  assert property (@(posedge clk_i) disable iff (!rst_ni) take_i |-> ready_o && !write_i && !write);

endmodule
