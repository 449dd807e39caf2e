// SPDX-License-Identifier: Apache-2.0
//
// A node of the reduction tree: lanes of a left and a right operand make lanes of one. Elements are
// combined bit for bit as switch/protocol/arithmetic.cc does. If an operand is absent, the other one
// passes unchanged; if both are, so is the result, whose bits are then anything.
//
// A result a cycle, without stalls, CombineCycles after the operands; with nothing to combine, both
// are absent. present_o needs no reset: it is what the operands were.
//
// The quick way has operands and a result of its own, QuickCycles after them, with quick_valid_i: they
// are of no sum of floats, and in a cycle with them the other operands are anything.
module sw_combine
  import sw_protocol_pkg::*;
  import sw_reduce_pkg::*;
#(
  parameter int unsigned Lanes = 1
) (
  input  logic                           clk_i,
  input  operation_t                     operation_i,
  input  logic                           left_present_i,
  input  logic                           right_present_i,
  input  logic [Lanes-1:0][LaneBits-1:0] left_i,
  input  logic [Lanes-1:0][LaneBits-1:0] right_i,
  input  logic                           quick_valid_i,
  input  operation_t                     quick_operation_i,
  input  logic                           quick_left_present_i,
  input  logic                           quick_right_present_i,
  input  logic [Lanes-1:0][LaneBits-1:0] quick_left_i,
  input  logic [Lanes-1:0][LaneBits-1:0] quick_right_i,
  output logic                           quick_present_o,
  output logic [Lanes-1:0][LaneBits-1:0] quick_result_o,
  output logic                           present_o,
  output logic [Lanes-1:0][LaneBits-1:0] result_o
);

  // Which adder the result comes from, if one; known in the last stage.
  typedef struct packed {
    logic present;
    logic sum32;
    logic sum64;
  } choice_t;

  choice_t choice, choice_last;
  logic adds;
  assign adds = left_present_i && right_present_i && operation_i.op == 3'(OpSum);
  assign choice.present = left_present_i || right_present_i;
  assign choice.sum32 = adds && operation_i.element == 2'(TypeFloat32);
  assign choice.sum64 = adds && operation_i.element == 2'(TypeFloat64);

  sw_delay #(
    .Width ($bits(choice_t)),
    .Cycles(FloatAddCycles)
  ) u_choice (
    .clk_i,
    .value_i(choice),
    .value_o(choice_last)
  );

  sw_delay #(
    .Width (1),
    .Cycles(QuickCycles)
  ) u_quick_present (
    .clk_i,
    .value_i(quick_left_present_i || quick_right_present_i),
    .value_o(quick_present_o)
  );

  for (genvar lane = 0; lane < Lanes; ++lane) begin : g_lane
    logic [LaneBits-1:0] simple, simple_last, sum32, sum64;

    sw_combine_simple u_simple (
      .clk_i,
      .operation_i    (quick_valid_i ? quick_operation_i : operation_i),
      .left_present_i (quick_valid_i ? quick_left_present_i : left_present_i),
      .right_present_i(quick_valid_i ? quick_right_present_i : right_present_i),
      .left_i         (quick_valid_i ? quick_left_i[lane] : left_i[lane]),
      .right_i        (quick_valid_i ? quick_right_i[lane] : right_i[lane]),
      .result_o       (simple)
    );
    assign quick_result_o[lane] = simple;

    sw_delay #(
      .Width (LaneBits),
      .Cycles(FloatAddCycles - QuickCycles)
    ) u_simple_delay (
      .clk_i,
      .value_i(simple),
      .value_o(simple_last)
    );

    for (genvar half = 0; half < 2; ++half) begin : g_half
      sw_float_add #(
        .ExponentBits(8),
        .FractionBits(23)
      ) u_add32 (
        .clk_i,
        .left_i (left_i[lane][32*half+:32]),
        .right_i(right_i[lane][32*half+:32]),
        .sum_o  (sum32[32*half+:32])
      );
    end

    sw_float_add #(
      .ExponentBits(11),
      .FractionBits(52)
    ) u_add64 (
      .clk_i,
      .left_i (left_i[lane]),
      .right_i(right_i[lane]),
      .sum_o  (sum64)
    );

    always_ff @(posedge clk_i) begin
      if (choice_last.sum64) begin
        result_o[lane] <= sum64;
      end else if (choice_last.sum32) begin
        result_o[lane] <= sum32;
      end else begin
        result_o[lane] <= simple_last;
      end
    end
  end

  always_ff @(posedge clk_i) present_o <= choice_last.present;

endmodule
