// SPDX-License-Identifier: Apache-2.0
//
// What sw_reduce_tree does, with one node for all of the tree, for ports that bring no word a cycle: a
// beat takes as many cycles as there are ports.
//
// phase_i counts cycles modulo Ports. A beat comes in a cycle in which it is 0, with valid_i, and stays
// for Ports cycles, with operation_i and present_i. Its result is there in the one cycle in which
// valid_o is 1, shared_cycles(Ports) later. Ports are 2, 4 or 16. If none is present, the result is
// anything.
//
// Each node of the tree has a phase of its own. What it makes is kept until the next beat's replaces it.
module sw_reduce_shared
  import sw_reduce_pkg::*;
#(
  parameter  int unsigned Ports = 4,
  localparam int unsigned PhaseBits = $clog2(Ports)
) (
  input  logic                           clk_i,
  input  logic                           rst_ni,
  input  logic [PhaseBits-1:0]           phase_i,
  input  logic                           valid_i,
  input  operation_t                     operation_i,
  input  logic [Ports-1:0]               present_i,
  input  logic [Ports-1:0][LaneBits-1:0] beats_i,
  output logic                           valid_o,
  output logic [LaneBits-1:0]            beat_o
);

  localparam int unsigned Levels = $clog2(Ports);
  localparam int unsigned Nodes = Ports - 1;
  localparam int unsigned Cycles = shared_cycles(Ports);

  if (!(Ports inside {2, 4, 16})) begin : g_bad_ports
    $error("ports that share a node are 2, 4 or 16");
  end

  typedef struct packed {
    logic                present;
    logic [LaneBits-1:0] beat;
  } operand_t;

  // By the node's phase.
  operand_t [Nodes-1:0] lefts, rights, kept_q;
  operation_t [Nodes-1:0] operations;
  operand_t left, left_q, right, right_q, result, result_q;
  operation_t operation, operation_q;
  logic [Nodes-1:0][2:0] turn;

  for (genvar level = 0; level < Levels; ++level) begin : g_level
    for (genvar i = 0; i < (Ports >> (level + 1)); ++i) begin : g_node
      localparam int unsigned Turn = shared_first(Ports, level) + i;
      localparam int unsigned Begin = shared_begin(Ports, level, i);

      if (level == 0) begin : g_ports
        assign lefts[Turn] = '{present: present_i[2*i], beat: beats_i[2*i]};
        assign rights[Turn] = '{present: present_i[2*i+1], beat: beats_i[2*i+1]};
      end else begin : g_kept
        localparam int unsigned Left = shared_first(Ports, level - 1) + 2 * i;
        assign lefts[Turn] = kept_q[Left];
        assign rights[Turn] = kept_q[Left+1];
        if (Begin > shared_begin(Ports, level - 1, 2 * i) + SharedNodeCycles + Ports) begin : g_late
          $error("an operand is replaced before it is taken");
        end
      end

      // The beat's, which has been replaced by those of later ones.
      sw_delay #(
        .Width ($bits(operation_t)),
        .Cycles(Begin / Ports * Ports)
      ) u_operation (
        .clk_i,
        .value_i(operation_i),
        .value_o(operations[Turn])
      );

      logic keeps;
      sw_enables u_keeps (
        .clk_i,
        .enable_i (phase_i == PhaseBits'((Turn + SharedNodeCycles + Ports - 1) % Ports)),
        .enables_o(keeps)
      );
      always_ff @(posedge clk_i) if (keeps) kept_q[Turn] <= result_q;

      // Its phase: of the left operand, the right one, and the operation.
      sw_enables #(
        .Copies(3)
      ) u_turn (
        .clk_i,
        .enable_i (phase_i == PhaseBits'((Turn + Ports - 1) % Ports)),
        .enables_o(turn[Turn])
      );
    end
  end

  // In the one phase that is no node's, none is present.
  always_comb begin
    left = '0;
    right = '0;
    operation = '0;
    for (int unsigned i = 0; i < Nodes; ++i) begin
      if (turn[i][0]) left |= lefts[i];
      if (turn[i][1]) right |= rights[i];
      if (turn[i][2]) operation |= operations[i];
    end
  end
  always_ff @(posedge clk_i) begin
    left_q <= left;
    right_q <= right;
    operation_q <= operation;
    result_q <= result;
  end

  logic unused_quick_present;
  logic [LaneBits-1:0] unused_quick_result;
  sw_combine u_combine (
    .clk_i,
    .operation_i          (operation_q),
    .left_present_i       (left_q.present),
    .right_present_i      (right_q.present),
    .left_i               (left_q.beat),
    .right_i              (right_q.beat),
    .quick_valid_i        (1'b0),
    .quick_operation_i    ('0),
    .quick_left_present_i (1'b0),
    .quick_right_present_i(1'b0),
    .quick_left_i         ('0),
    .quick_right_i        ('0),
    .quick_present_o      (unused_quick_present),
    .quick_result_o       (unused_quick_result),
    .present_o            (result.present),
    .result_o             (result.beat)
  );

  // What came before a reset is forgotten.
  logic [Cycles-1:0] valid_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      valid_q <= '0;
    end else begin
      valid_q <= {valid_q[Cycles-2:0], valid_i};
    end
  end
  assign valid_o = valid_q[Cycles-1];
  assign beat_o = result_q.beat;

  begins_in_its_phase :
  assert property (@(posedge clk_i) disable iff (!rst_ni) valid_i |-> phase_i == '0);

endmodule
