// SPDX-License-Identifier: Apache-2.0
//
// Two places between who sends and who takes: ready_o does not depend on ready_i, so that what all
// takers say does not reach into the sender's memories in the same cycle. A value comes out a cycle
// after it was taken, or later, in order.
module sw_skid #(
  parameter int unsigned Width = 64
) (
  input  logic             clk_i,
  input  logic             rst_ni,
  input  logic             valid_i,
  output logic             ready_o,
  input  logic [Width-1:0] value_i,
  output logic             valid_o,
  input  logic             ready_i,
  output logic [Width-1:0] value_o
);

  logic [1:0] valid_q;  // the first place, and the one behind it
  logic [1:0][Width-1:0] value_q;
  logic leaves;

  assign ready_o = !valid_q[1];
  assign valid_o = valid_q[0];
  assign value_o = value_q[0];
  assign leaves = !valid_q[0] || ready_i;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      valid_q <= '0;
    end else if (leaves) begin
      valid_q <= {1'b0, valid_q[1] || valid_i};
    end else begin
      valid_q[1] <= valid_q[1] || valid_i;
    end
  end
  always_ff @(posedge clk_i) begin
    if (leaves) value_q[0] <= valid_q[1] ? value_q[1] : value_i;
    if (ready_o) value_q[1] <= value_i;
  end

endmodule
