// SPDX-License-Identifier: Apache-2.0
//
// A register of one bit, several times: enables of what is wide, each near what it enables. enables_o are
// all the same, enable_i of the cycle before; they have no reset, and what enable_i is at a reset a cycle
// after it. Synthesis keeps all of them.
module sw_enables #(
  parameter int unsigned Copies = 1
) (
  input  logic              clk_i,
  input  logic              enable_i,
  output logic [Copies-1:0] enables_o
);

  for (genvar i = 0; i < Copies; ++i) begin : g_copy
    logic enable_q;
    (* keep *)
    always_ff @(posedge clk_i) enable_q <= enable_i;
    assign enables_o[i] = enable_q;
  end

endmodule
