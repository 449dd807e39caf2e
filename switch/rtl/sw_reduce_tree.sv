// SPDX-License-Identifier: Apache-2.0
//
// Combines a beat of each port into one, in the order of the protocol: ports 0 and 1, 2 and 3, ...,
// then those pairs, and so on; the lower port is the left operand. A port that is not present is
// skipped. If none is, present_o is 0, and the beat is anything.
//
// A beat a cycle, without stalls: who starts one has room for the result, Cycles later. Ports are two
// at least, and of any number: one without a partner waits as long as a node takes. Lanes of a beat
// whose elements end before it carry anything there, and so does the result.
module sw_reduce_tree
  import sw_reduce_pkg::*;
#(
  parameter  int unsigned Ports = 16,
  parameter  int unsigned Lanes = 1,
  localparam int unsigned Levels = $clog2(Ports),
  localparam int unsigned Cycles = Levels * CombineCycles
) (
  input  logic                                      clk_i,
  input  logic                                      rst_ni,
  input  logic                                      valid_i,
  input  operation_t                                operation_i,
  input  logic [Ports-1:0]                          present_i,
  input  logic [Ports-1:0][Lanes-1:0][LaneBits-1:0] beats_i,
  output logic                                      valid_o,
  output logic                                      present_o,
  output logic            [Lanes-1:0][LaneBits-1:0] beat_o
);

  if (Ports < 2) begin : g_too_few
    $error("a reduction tree has two ports at least");
  end

  for (genvar level = 0; level <= Levels; ++level) begin : g_level
    // Half as many as below, rounded up.
    localparam int unsigned Nodes = (Ports + (1 << level) - 1) >> level;
    logic [Nodes-1:0] present;
    logic [Nodes-1:0][Lanes-1:0][LaneBits-1:0] beats;
    operation_t operation;

    if (level == 0) begin : g_ports
      assign present = present_i;
      assign beats = beats_i;
      assign operation = operation_i;
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
            .present_o      (present[i]),
            .result_o       (beats[i])
          );
        end else begin : g_single
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

      if (level < Levels) begin : g_operation
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
        assign unused_operation = ^operation;
      end
    end
  end

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
  assign present_o = g_level[Levels].present[0];
  assign beat_o = g_level[Levels].beats[0];

endmodule
