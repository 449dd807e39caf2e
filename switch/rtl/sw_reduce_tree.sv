// SPDX-License-Identifier: Apache-2.0
//
// Combines a beat of each port into one, in the order of the protocol: ports 0 and 1, 2 and 3, ...,
// then those pairs, and so on; the lower port is the left operand. A port that is not present is
// skipped. If none is, present_o is 0, and the beat is anything.
//
// A beat a cycle, without stalls: who starts one has room for the result, Cycles later, or with
// quick_i QuickTreeCycles later. Ports are two at least, and of any number: one without a partner
// waits as long as a node takes. Lanes of a beat whose elements end before it carry anything there, and
// so does the result. A quick beat is of no sum of floats, and none that is not quick is on its way:
// so results leave in order.
module sw_reduce_tree
  import sw_reduce_pkg::*;
#(
  parameter  int unsigned Ports = 16,
  parameter  int unsigned Lanes = 1,
  localparam int unsigned Levels = $clog2(Ports),
  localparam int unsigned Cycles = Levels * CombineCycles,
  localparam int unsigned QuickTreeCycles = Levels * QuickCycles
) (
  input  logic                                      clk_i,
  input  logic                                      rst_ni,
  input  logic                                      valid_i,
  input  logic                                      quick_i,
  input  operation_t                                operation_i,
  input  logic [Ports-1:0]                          present_i,
  input  logic [Ports-1:0][Lanes-1:0][LaneBits-1:0] beats_i,
  output logic                                      valid_o,
  output logic                                      quick_o,
  output logic                                      present_o,
  output logic            [Lanes-1:0][LaneBits-1:0] beat_o
);

  if (Ports < 2) begin : g_too_few
    $error("a reduction tree has two ports at least");
  end

  logic [Cycles-1:0] valid_q;
  logic [QuickTreeCycles-1:0] quick_valid_q;
  for (genvar level = 0; level <= Levels; ++level) begin : g_level
    // Half as many as below, rounded up.
    localparam int unsigned Nodes = (Ports + (1 << level) - 1) >> level;
    logic [Nodes-1:0] present, quick_present;
    logic [Nodes-1:0][Lanes-1:0][LaneBits-1:0] beats, quick_beats;
    operation_t operation, quick_operation;
    logic quick_valid;

    if (level == 0) begin : g_ports
      assign present = present_i;
      assign beats = beats_i;
      assign operation = operation_i;
      assign quick_present = present_i;
      assign quick_beats = beats_i;
      assign quick_operation = operation_i;
      assign quick_valid = valid_i && quick_i;
    end else begin : g_nodes
      localparam int unsigned Below = (Ports + (1 << (level - 1)) - 1) >> (level - 1);

      for (genvar i = 0; i < Nodes; ++i) begin : g_node
        if (2 * i + 1 < Below) begin : g_pair
          sw_combine #(
            .Lanes(Lanes)
          ) u_combine (
            .clk_i,
            .operation_i    (g_level[level-1].operation),
            .left_present_i (g_level[level-1].present[2*i]),
            .right_present_i(g_level[level-1].present[2*i+1]),
            .left_i         (g_level[level-1].beats[2*i]),
            .right_i        (g_level[level-1].beats[2*i+1]),
            .quick_valid_i  (g_level[level-1].quick_valid),
            .quick_operation_i(g_level[level-1].quick_operation),
            .quick_left_present_i(g_level[level-1].quick_present[2*i]),
            .quick_right_present_i(g_level[level-1].quick_present[2*i+1]),
            .quick_left_i   (g_level[level-1].quick_beats[2*i]),
            .quick_right_i  (g_level[level-1].quick_beats[2*i+1]),
            .quick_present_o(quick_present[i]),
            .quick_result_o (quick_beats[i]),
            .present_o      (present[i]),
            .result_o       (beats[i])
          );
        end else begin : g_single
          sw_delay #(
            .Width (1 + Lanes * LaneBits),
            .Cycles(QuickCycles)
          ) u_quick_delay (
            .clk_i,
            .value_i({g_level[level-1].quick_present[2*i], g_level[level-1].quick_beats[2*i]}),
            .value_o({quick_present[i], quick_beats[i]})
          );

          sw_delay #(
            .Width (1 + Lanes * LaneBits),
            .Cycles(CombineCycles)
          ) u_delay (
            .clk_i,
            .value_i({g_level[level-1].present[2*i], g_level[level-1].beats[2*i]}),
            .value_o({present[i], beats[i]})
          );
        end
      end

      assign quick_valid = quick_valid_q[level*QuickCycles-1];
      if (level < Levels) begin : g_operation
        sw_delay #(
          .Width ($bits(operation_t)),
          .Cycles(QuickCycles)
        ) u_quick_operation (
          .clk_i,
          .value_i(g_level[level-1].quick_operation),
          .value_o(quick_operation)
        );
        sw_delay #(
          .Width ($bits(operation_t)),
          .Cycles(CombineCycles)
        ) u_operation (
          .clk_i,
          .value_i(g_level[level-1].operation),
          .value_o(operation)
        );
      end else begin : g_last
        logic unused_operation;
        assign operation = '0;
        assign quick_operation = '0;
        assign unused_operation = ^{operation, quick_operation};
      end
    end
  end

  // What came before a reset is forgotten.
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      valid_q <= '0;
      quick_valid_q <= '0;
    end else begin
      valid_q <= {valid_q[Cycles-2:0], valid_i && !quick_i};
      quick_valid_q <= {quick_valid_q[QuickTreeCycles-2:0], valid_i && quick_i};
    end
  end

  assign quick_o = g_level[Levels].quick_valid;
  assign valid_o = valid_q[Cycles-1] || quick_o;
  assign present_o = quick_o ? g_level[Levels].quick_present[0] : g_level[Levels].present[0];
  assign beat_o = quick_o ? g_level[Levels].quick_beats[0] : g_level[Levels].beats[0];

  quick_when_nothing_else_is_there :
  assert property (@(posedge clk_i) disable iff (!rst_ni)
      valid_i && quick_i |-> valid_q[Cycles-2:0] == '0 && is_quick(operation_i));

endmodule
