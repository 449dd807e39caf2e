// SPDX-License-Identifier: Apache-2.0
//
// Jobs and groups that a switch knows, and of which groups something came. Written by the processor
// beside it, which has checked what it writes; read by what a packet's header names. Job 0 has the
// administrator's key.
//
// A write is taken every cycle, and seen by readers a cycle later: who writes does so between packets. With
// FastClock it is seen two cycles later: table_i, index_i and record_i stay for a cycle after write_i.
// Records lie in the low bits of record_i. What has been found is there a cycle later, a child, a parent and
// a key without a clock. A group that is written anew keeps its children until those are written, too.
//
// After a group or a child is written, the group's children are told to those who keep them by port
// (sw_first), one a cycle in which the bit of its port of put_o is 1; busy_o is 1 meanwhile, from the cycle after the write
// on. Of those, put_first_i says in the same cycle whether it is the first one behind its port:
// not_first_o are the others of a group, without a clock.
//
// A bit of touched_o is 1 from where its group is written, or touch_i is 1 with child_group_at_i, until
// its index is written to TableTouched: what is read when that is taken is of all packets since the
// last time.
module sw_group_table
  import sw_protocol_pkg::MaxChildren;
  import sw_switch_pkg::*;
#(
  parameter  int unsigned Ports = 18,
  parameter  int unsigned Jobs = 4,
  parameter  int unsigned Groups = 4,
  parameter  int unsigned Children = 16,
  parameter  int unsigned Window = 16,
  parameter  int unsigned OperandBytes = 1408,
  parameter  int unsigned FastClock = 0,
  localparam int unsigned GroupBits = $clog2(Groups),
  localparam int unsigned ChildBits = $clog2(Children),
  localparam int unsigned JobBits = $clog2(Jobs),
  localparam int unsigned ChildAtBits = $clog2(Groups * Children)
) (
  input  logic                  clk_i,
  input  logic                  rst_ni,
  input  logic                  write_i,
  input  table_e                table_i,
  input  logic [15:0]           index_i,
  input  logic [RecordBits-1:0] record_i,
  output logic                  busy_o,
  output logic                  clear_o,
  output logic [Ports-1:0]      put_o,
  output logic [GroupBits-1:0]  scan_group_o,
  output logic [ChildBits-1:0]  scan_child_o,
  output address_t              scan_address_o,
  input  logic                  put_first_i,
  output job_entry_t [Jobs-1:0] jobs_o,
  output group_entry_t [Groups-1:0] groups_o,
  input  logic [31:0]           job_i,
  input  logic [31:0]           group_i,
  output logic                  job_found_o,
  output logic [JobBits-1:0]    job_at_o,
  output logic                  group_found_o,
  output logic [GroupBits-1:0]  group_at_o,
  output group_entry_t          group_o,
  // Of these groups' children, one each; one that is not there is anything.
  input  logic [GroupBits-1:0]  child_group_at_i,
  input  logic [15:0]           child_i,
  output address_t              child_o,
  input  logic [GroupBits-1:0]  target_group_at_i,
  input  logic [15:0]           target_i,
  output address_t              target_o,
  output address_t              target_parent_o,
  input  logic [JobBits-1:0]    key_at_i,
  output logic [127:0]          key_o,
  input  logic [GroupBits-1:0]  not_first_group_at_i,
  output logic [Children-1:0]   not_first_o,
  input  logic                  touch_i,
  output logic [Groups-1:0]     touched_o
);

  job_entry_t [Jobs-1:0] jobs_q;
  group_entry_t [Groups-1:0] groups_q;
  group_entry_t written;
  address_t written_child;
  address_t children[Groups*Children];
  assign jobs_o = jobs_q;
  assign groups_o = groups_q;

  // What is written; with FastClock from a register, as it enables what is wide.
  typedef struct packed {
    logic [Jobs-1:0]   job;
    logic [Groups-1:0] group;
    logic [Groups-1:0] untouched;
    logic              child;
    logic              scan;  // a group or a child
  } writes_t;
  writes_t named, writes;
  always_comb begin
    for (int unsigned i = 0; i < Jobs; ++i) begin
      named.job[i] = write_i && table_i == TableJobs && JobBits'(index_i) == JobBits'(i);
    end
    for (int unsigned i = 0; i < Groups; ++i) begin
      named.group[i] = write_i && table_i == TableGroups && GroupBits'(index_i) == GroupBits'(i);
      named.untouched[i] = write_i && table_i == TableTouched &&
          GroupBits'(index_i) == GroupBits'(i);
    end
    named.child = write_i && table_i == TableChildren;
    named.scan = write_i && table_i inside {TableGroups, TableChildren};
  end
  sw_delay_flags #(
    .Width ($bits(writes_t)),
    .Cycles(FastClock)
  ) u_writes (
    .clk_i,
    .rst_ni,
    .flags_i(named),
    .flags_o(writes)
  );

  // Children that cannot be are absent in all that comes of a group: of most there are no more.
  always_comb begin
    written = record_i;
    written.children &= '1 >> (MaxChildren - Children);
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      for (int unsigned i = 0; i < Jobs; ++i) jobs_q[i].valid <= 1'b0;
      for (int unsigned i = 0; i < Groups; ++i) groups_q[i].valid <= 1'b0;
    end else begin
      for (int unsigned i = 0; i < Jobs; ++i) begin
        if (writes.job[i]) jobs_q[i] <= record_i[$bits(job_entry_t)-1:0];
      end
      for (int unsigned i = 0; i < Groups; ++i) if (writes.group[i]) groups_q[i] <= written;
    end
  end

  always_ff @(posedge clk_i) begin
    if (writes.child) begin
      children[ChildAtBits'(index_i)] <= record_i[$bits(address_t)-1:0];
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      touched_o <= '0;
    end else begin
      touched_o <= (touched_o & ~writes.untouched) | writes.group;
      if (touch_i) touched_o[child_group_at_i] <= 1'b1;
    end
  end

  logic [Jobs-1:0] job_hits_q;
  logic [Groups-1:0] group_hits_q;
  always_ff @(posedge clk_i) begin
    for (int unsigned i = 0; i < Jobs; ++i) begin
      job_hits_q[i] <= jobs_q[i].valid && jobs_q[i].job == job_i;
    end
    for (int unsigned i = 0; i < Groups; ++i) begin
      group_hits_q[i] <= groups_q[i].valid && groups_q[i].job == job_i &&
          groups_q[i].group == group_i;
    end
  end

  assign job_found_o = job_hits_q != '0;
  assign group_found_o = group_hits_q != '0;
  always_comb begin
    job_at_o = '0;
    for (int unsigned i = 0; i < Jobs; ++i) if (job_hits_q[i]) job_at_o = JobBits'(i);
    group_at_o = '0;
    group_o = '0;
    for (int unsigned i = 0; i < Groups; ++i) begin
      if (group_hits_q[i]) begin
        group_at_o = GroupBits'(i);
        group_o = groups_q[i];
      end
    end
  end

  // Which child is read; a cycle later it is told.
  logic scans_q, puts_q, clears_q;
  logic [Ports-1:0] put_port_q;  // which it is behind, and none, if it is not told
  logic [GroupBits-1:0] written_group, scan_group_q;
  logic [ChildBits-1:0] scan_child_q, put_child_q;
  address_t put_address_q;
  logic [Groups-1:0][Children-1:0] first_q;
  logic [Children-1:0] scanned_children;
  address_t scanned;
  assign scanned = children[ChildAtBits'(32'(scan_group_q) * Children + 32'(scan_child_q))];
  logic scan_starts;
  assign scanned_children = groups_q[scan_group_q].children[Children-1:0];
  assign scan_starts = writes.scan;
  always_comb begin
    written_group = GroupBits'(index_i);
    if (table_i == TableChildren) begin
      written_group = '0;
      for (int unsigned i = 1; i < Groups; ++i) begin
        if (32'(index_i) >= i * Children) written_group = GroupBits'(i);
      end
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      {scans_q, puts_q, clears_q, put_port_q} <= '0;
    end else begin
      scans_q <= scan_starts || (scans_q && scan_child_q != ChildBits'(Children - 1));
      puts_q <= scans_q && scanned_children[scan_child_q];
      for (int unsigned i = 0; i < Ports; ++i) begin
        put_port_q[i] <= scans_q && scanned_children[scan_child_q] && scanned.port == 8'(i);
      end
      clears_q <= scan_starts;
    end
  end
  always_ff @(posedge clk_i) begin
    if (scan_starts) begin
      scan_group_q <= written_group;
      scan_child_q <= '0;
    end else begin
      scan_child_q <= scan_child_q + 1'b1;
    end
    put_child_q <= scan_child_q;
    put_address_q <= scanned;
    if (clears_q) begin
      first_q[scan_group_q] <= '0;
    end else if (puts_q && put_first_i) begin
      first_q[scan_group_q][put_child_q] <= 1'b1;
    end
  end
  assign busy_o = scans_q || puts_q;
  assign clear_o = clears_q;
  assign put_o = put_port_q;
  assign scan_group_o = scan_group_q;
  assign scan_child_o = put_child_q;
  assign scan_address_o = put_address_q;
  assign not_first_o = groups_q[not_first_group_at_i].children[Children-1:0] &
      ~first_q[not_first_group_at_i];

  written_one_at_a_time :
  assert property (@(posedge clk_i) disable iff (!rst_ni) scan_starts |-> !busy_o);

  assign child_o = children[ChildAtBits'(32'(child_group_at_i) * Children + 32'(child_i))];
  assign target_o = children[ChildAtBits'(32'(target_group_at_i) * Children + 32'(target_i))];
  assign target_parent_o = groups_q[target_group_at_i].parent;
  assign key_o = jobs_q[key_at_i].key;

  index_is_in_the_table :
  assert property (@(posedge clk_i) disable iff (!rst_ni) write_i |->
      table_i == TableForward || 32'(index_i) <
      (table_i == TableJobs ? Jobs : table_i == TableChildren ? Groups * Children : Groups));

  logic [MaxChildren-1:0] there_children;
  assign there_children = record_i[MaxChildren-1:0];
  logic unused_written;
  assign written_child = record_i[$bits(address_t)-1:0];
  assign unused_written = ^{written, written_child};
  group_can_be :
  assert property (@(posedge clk_i) disable iff (!rst_ni)
      write_i && table_i == TableGroups && written.valid |->
      (written.root || 32'(written.parent.port) < Ports) && $onehot(written.window) &&
      32'(written.window) <= Window && 32'(written.operand_bytes) <= OperandBytes &&
      there_children >> Children == '0);
  child_can_be :
  assert property (@(posedge clk_i) disable iff (!rst_ni)
      write_i && table_i == TableChildren |-> 32'(written_child.port) < Ports);

endmodule
