// SPDX-License-Identifier: Apache-2.0
//
// Flags, Cycles later, as sw_delay has values, but 0 from a reset on; 0 is a wire.
module sw_delay_flags #(
  parameter int unsigned Width = 1,
  parameter int unsigned Cycles = 1
) (
  input  logic             clk_i,
  input  logic             rst_ni,
  input  logic [Width-1:0] flags_i,
  output logic [Width-1:0] flags_o
);

  if (Cycles == 0) begin : g_wire
    logic unused_clock;
    assign unused_clock = ^{clk_i, rst_ni};
    assign flags_o = flags_i;
  end else begin : g_registers
    logic [Cycles-1:0][Width-1:0] flags_q;

    always_ff @(posedge clk_i or negedge rst_ni) begin
      if (!rst_ni) begin
        flags_q <= '0;
      end else begin
        flags_q[0] <= flags_i;
        for (int unsigned i = 1; i < Cycles; ++i) flags_q[i] <= flags_q[i-1];
      end
    end

    assign flags_o = flags_q[Cycles-1];
  end

endmodule
