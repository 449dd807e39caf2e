// SPDX-License-Identifier: Apache-2.0
//
// A value, Cycles later; 0 is a wire. Holds anything until that many cycles have gone: what must be
// known after a reset is kept elsewhere.
module sw_delay #(
  parameter int unsigned Width = 1,
  parameter int unsigned Cycles = 1
) (
  input  logic             clk_i,
  input  logic [Width-1:0] value_i,
  output logic [Width-1:0] value_o
);

  if (Cycles == 0) begin : g_wire
    logic unused_clk;
    assign unused_clk = clk_i;
    assign value_o = value_i;
  end else begin : g_registers
    logic [Cycles-1:0][Width-1:0] value_q;

    always_ff @(posedge clk_i) begin
      value_q[0] <= value_i;
      for (int unsigned i = 1; i < Cycles; ++i) value_q[i] <= value_q[i-1];
    end

    assign value_o = value_q[Cycles-1];
  end

endmodule
