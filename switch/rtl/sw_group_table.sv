// SPDX-License-Identifier: Apache-2.0
//
// Jobs and groups that a switch knows, and of which groups something came. Written by the processor
// beside it, which has checked what it writes; read by what a packet's header names. Job 0 has the
// administrator's key.
//
// A write is taken every cycle, and seen by readers a cycle later: who writes does so between packets.
// Records lie in the low bits of record_i. What has been found is there a cycle later, a child without
// a clock. A group that is written anew keeps its children until those are written, too.
//
// A bit of touched_o is 1 from where its group is written, or touch_i is 1 with child_group_at_i, until
// its index is written to TableTouched: what is read when that is taken is of all packets since the
// last time.
module sw_group_table
  import sw_switch_pkg::*;
#(
  parameter  int unsigned Ports = 18,
  parameter  int unsigned Jobs = 4,
  parameter  int unsigned Groups = 4,
  parameter  int unsigned Children = 16,
  parameter  int unsigned Window = 16,
  parameter  int unsigned OperandBytes = 1408,
  localparam int unsigned GroupBits = $clog2(Groups),
  localparam int unsigned JobBits = $clog2(Jobs),
  localparam int unsigned ChildAtBits = $clog2(Groups * Children)
) (
  input  logic                  clk_i,
  input  logic                  rst_ni,
  input  logic                  write_i,
  input  table_e                table_i,
  input  logic [15:0]           index_i,
  input  logic [RecordBits-1:0] record_i,
  output job_entry_t [Jobs-1:0] jobs_o,
  input  logic [31:0]           job_i,
  input  logic [31:0]           group_i,
  output logic                  job_found_o,
  output logic [127:0]          key_o,
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
  input  logic                  touch_i,
  output logic [Groups-1:0]     touched_o
);

  job_entry_t [Jobs-1:0] jobs_q;
  group_entry_t [Groups-1:0] groups_q;
  address_t children[Groups*Children];
  assign jobs_o = jobs_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      for (int unsigned i = 0; i < Jobs; ++i) jobs_q[i].valid <= 1'b0;
      for (int unsigned i = 0; i < Groups; ++i) groups_q[i].valid <= 1'b0;
    end else if (write_i) begin
      if (table_i == TableJobs) begin
        jobs_q[JobBits'(index_i)] <= record_i[$bits(job_entry_t)-1:0];
      end
      if (table_i == TableGroups) groups_q[GroupBits'(index_i)] <= record_i;
    end
  end

  always_ff @(posedge clk_i) begin
    if (write_i && table_i == TableChildren) begin
      children[ChildAtBits'(index_i)] <= record_i[$bits(address_t)-1:0];
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      touched_o <= '0;
    end else begin
      if (write_i && table_i == TableTouched) touched_o[GroupBits'(index_i)] <= 1'b0;
      if (write_i && table_i == TableGroups) touched_o[GroupBits'(index_i)] <= 1'b1;
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
    key_o = '0;
    for (int unsigned i = 0; i < Jobs; ++i) if (job_hits_q[i]) key_o = jobs_q[i].key;
    group_at_o = '0;
    group_o = '0;
    for (int unsigned i = 0; i < Groups; ++i) begin
      if (group_hits_q[i]) begin
        group_at_o = GroupBits'(i);
        group_o = groups_q[i];
      end
    end
  end

  assign child_o = children[ChildAtBits'(32'(child_group_at_i) * Children + 32'(child_i))];
  assign target_o = children[ChildAtBits'(32'(target_group_at_i) * Children + 32'(target_i))];

  index_is_in_the_table :
  assert property (@(posedge clk_i) disable iff (!rst_ni) write_i |->
      table_i == TableForward || 32'(index_i) <
      (table_i == TableJobs ? Jobs : table_i == TableChildren ? Groups * Children : Groups));

  group_entry_t written;
  address_t written_child;
  logic unused_written;
  assign written = record_i;
  assign written_child = record_i[$bits(address_t)-1:0];
  assign unused_written = ^{written, written_child};
  group_can_be :
  assert property (@(posedge clk_i) disable iff (!rst_ni)
      write_i && table_i == TableGroups && written.valid |->
      (written.root || 32'(written.parent.port) < Ports) && $onehot(written.window) &&
      32'(written.window) <= Window && 32'(written.operand_bytes) <= OperandBytes &&
      written.children >> Children == '0);
  child_can_be :
  assert property (@(posedge clk_i) disable iff (!rst_ni)
      write_i && table_i == TableChildren |-> 32'(written_child.port) < Ports);

endmodule
