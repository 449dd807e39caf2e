// SPDX-License-Identifier: Apache-2.0
//
// What a switch has counted since its reset: one of counter_i in each cycle in which counts_i is 1, and
// frames without room of each port in overruns_i. A number is there a cycle later.
module sw_counters
  import sw_switch_pkg::*;
#(
  parameter int unsigned Ports = 18
) (
  input  logic                      clk_i,
  input  logic                      rst_ni,
  input  logic                      counts_i,
  input  counter_e                  counter_i,  // not CountOverrun
  input  logic [Ports-1:0]          overruns_i,
  output logic [Counters-1:0][63:0] counters_o
);

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      counters_o <= '0;
    end else begin
      if (counts_i) counters_o[counter_i] <= counters_o[counter_i] + 64'd1;
      counters_o[CountOverrun] <= counters_o[CountOverrun] + 64'($countones(overruns_i));
    end
  end

  overruns_are_counted_apart :
  assert property (@(posedge clk_i) disable iff (!rst_ni) counts_i |-> counter_i != CountOverrun);

endmodule
