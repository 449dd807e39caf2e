// SPDX-License-Identifier: Apache-2.0
//
// A lane of all operations but the sum of floats: sums of integers, which wrap around, minima and
// maxima, and, or, xor. If an operand is absent, the other one passes, whatever the operation; if both
// are, the result is anything. Operations that the protocol does not define give anything.
//
// In the order of the least, -0 is below +0; with a NaN, the result is the canonical one.
//
// A result a cycle, without stalls, QuickCycles, two, after the operands.
module sw_combine_simple
  import sw_protocol_pkg::*;
  import sw_reduce_pkg::*;
(
  input  logic                clk_i,
  input  operation_t          operation_i,
  input  logic                left_present_i,
  input  logic                right_present_i,
  input  logic [LaneBits-1:0] left_i,
  input  logic [LaneBits-1:0] right_i,
  output logic [LaneBits-1:0] result_o
);

  localparam int unsigned HalfBits = LaneBits / 2;
  localparam logic [31:0] Nan32 = 32'h7fc00000;
  localparam logic [63:0] Nan64 = 64'h7ff8000000000000;

  // Of all but the sign.
  function automatic logic is_nan32(logic [30:0] magnitude);
    return (&magnitude[30:23]) && magnitude[22:0] != '0;
  endfunction

  function automatic logic is_nan64(logic [62:0] magnitude);
    return (&magnitude[62:52]) && magnitude[51:0] != '0;
  endfunction

  // A number whose order as an unsigned one is that of the value: of negative floats, which have their
  // magnitude in them, all bits are turned; of other signed values the sign is.
  function automatic logic [31:0] order32(logic [31:0] value, logic is_float);
    return value ^ {1'b1, {31{is_float && value[31]}}};
  endfunction

  function automatic logic [63:0] order64(logic [63:0] value, logic is_float);
    return value ^ {1'b1, {63{is_float && value[63]}}};
  endfunction

  logic is_wide, is_float;
  assign is_wide = operation_i.element inside {2'(TypeInt64), 2'(TypeFloat64)};
  assign is_float = operation_i.element inside {2'(TypeFloat32), 2'(TypeFloat64)};

  // 1: sums, comparisons and logic, of all widths at once. What a wide sum carries from half to half comes
  // in a cycle later.
  logic [HalfBits:0] low_sum;
  logic [HalfBits-1:0] high_sum;
  assign low_sum = {1'b0, left_i[HalfBits-1:0]} + {1'b0, right_i[HalfBits-1:0]};
  assign high_sum = left_i[LaneBits-1:HalfBits] + right_i[LaneBits-1:HalfBits];

  logic [1:0] less, nan;
  always_comb begin
    for (int unsigned half = 0; half < 2; ++half) begin
      less[half] = order32(left_i[32*half+:32], is_float) < order32(right_i[32*half+:32], is_float);
      nan[half] = is_float &&
          (is_nan32(left_i[32*half+:31]) || is_nan32(right_i[32*half+:31]));
    end
    if (is_wide) begin
      less = {2{order64(left_i, is_float) < order64(right_i, is_float)}};
      nan = {2{is_float && (is_nan64(left_i[62:0]) || is_nan64(right_i[62:0]))}};
    end
  end

  logic [LaneBits-1:0] bitwise;
  always_comb begin
    unique case (operation_i.op)
      3'(OpAnd): bitwise = left_i & right_i;
      3'(OpOr): bitwise = left_i | right_i;
      default: bitwise = left_i ^ right_i;
    endcase
  end

  typedef enum logic [1:0] {
    SourceSum,
    SourceBitwise,
    SourceExtreme
  } source_e;

  source_e source;
  always_comb begin
    unique case (operation_i.op)
      3'(OpSum): source = SourceSum;
      3'(OpMin), 3'(OpMax): source = SourceExtreme;
      default: source = SourceBitwise;
    endcase
    if (!left_present_i || !right_present_i) source = SourceExtreme;
  end

  source_e source_1_q;
  logic is_wide_1_q;
  logic [1:0] take_left_1_q, nan_1_q;
  logic [LaneBits-1:0] computed, computed_1_q, left_1_q, right_1_q;
  logic carries_1_q;

  always_ff @(posedge clk_i) begin
    source_1_q <= source;
    is_wide_1_q <= is_wide;
    computed_1_q <= source == SourceSum ? {high_sum, low_sum[HalfBits-1:0]} : bitwise;
    carries_1_q <= source == SourceSum && is_wide && low_sum[HalfBits];
    left_1_q <= left_i;
    right_1_q <= right_i;
    if (left_present_i && right_present_i) begin
      take_left_1_q <= less ^ {2{operation_i.op == 3'(OpMax)}};
      nan_1_q <= nan;
    end else begin
      take_left_1_q <= {2{left_present_i}};
      nan_1_q <= '0;
    end
  end

  // 2: one of the operands, or what is computed.
  logic [LaneBits-1:0] result_d, nan_result;
  assign nan_result = is_wide_1_q ? Nan64 : {2{Nan32}};
  assign computed = {computed_1_q[LaneBits-1:HalfBits] + HalfBits'(carries_1_q),
      computed_1_q[HalfBits-1:0]};

  always_comb begin
    for (int unsigned half = 0; half < 2; ++half) begin
      if (source_1_q != SourceExtreme) begin
        result_d[32*half+:32] = computed[32*half+:32];
      end else if (nan_1_q[half]) begin
        result_d[32*half+:32] = nan_result[32*half+:32];
      end else begin
        result_d[32*half+:32] =
            take_left_1_q[half] ? left_1_q[32*half+:32] : right_1_q[32*half+:32];
      end
    end
  end

  always_ff @(posedge clk_i) result_o <= result_d;

endmodule
