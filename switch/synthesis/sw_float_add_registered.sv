// SPDX-License-Identifier: Apache-2.0
//
// An adder between registers, as it stands in a node of the tree: what it takes of a chip, and its
// clock. sum_o belongs to the operands of nine cycles ago.
module sw_float_add_registered #(
  parameter  int unsigned ExponentBits = 8,
  parameter  int unsigned FractionBits = 23,
  localparam int unsigned Width = 1 + ExponentBits + FractionBits
) (
  input  logic             clk_i,
  input  logic [Width-1:0] left_i,
  input  logic [Width-1:0] right_i,
  output logic [Width-1:0] sum_o
);

  logic [Width-1:0] left_q, right_q, sum;

  sw_float_add #(
    .ExponentBits(ExponentBits),
    .FractionBits(FractionBits)
  ) u_add (
    .clk_i,
    .left_i (left_q),
    .right_i(right_q),
    .sum_o  (sum)
  );

  always_ff @(posedge clk_i) begin
    left_q <= left_i;
    right_q <= right_i;
    sum_o <= sum;
  end

endmodule
