// SPDX-License-Identifier: Apache-2.0
//
// The sum of two floats of IEEE 754: to nearest, ties to even, subnormals kept. A sum with a NaN, or
// that is one, is the canonical quiet NaN: positive, payload 0.
//
// A sum a cycle, without stalls. sum_o belongs to the operands of seven cycles ago and comes out of
// the rounding adder: whoever reads it puts it into a register, the eighth.
//
//   1 compare   2 order     3 align by fours   4 align by ones, add
//   5 count leading zeros   6 normalize by eights   7 normalize by ones   8 round
module sw_float_add #(
  parameter  int unsigned ExponentBits = 8,
  parameter  int unsigned FractionBits = 23,
  localparam int unsigned Width = 1 + ExponentBits + FractionBits
) (
  input  logic             clk_i,
  input  logic [Width-1:0] left_i,
  input  logic [Width-1:0] right_i,
  output logic [Width-1:0] sum_o
);

  // A significand has a hidden bit in front; below it are guard, round and sticky bit.
  localparam int unsigned SignificandBits = FractionBits + 4;
  // Before it there is room for a carry.
  localparam int unsigned SumBits = SignificandBits + 1;
  localparam int unsigned ShiftBits = $clog2(SumBits);
  // What is shifted by this much is gone but for the sticky bit.
  localparam int unsigned MaxShift = (1 << ShiftBits) - 1;
  localparam logic [ExponentBits-1:0] ExponentOnes = '1;

  typedef struct packed {
    logic                    negative;
    logic [ExponentBits-1:0] exponent;
    logic [FractionBits-1:0] fraction;
  } float_t;

  // What takes the place of the sum.
  typedef struct packed {
    logic nan;
    logic infinite;
  } special_t;

  // 1: which is the greater in magnitude, by how much the exponents differ either way, and what is
  // special. A subnormal has the exponent of the least normal numbers.
  float_t left, right;
  assign left = left_i;
  assign right = right_i;

  logic left_infinite, right_infinite, left_nan, right_nan;
  assign left_infinite = left.exponent == ExponentOnes && left.fraction == '0;
  assign right_infinite = right.exponent == ExponentOnes && right.fraction == '0;
  assign left_nan = left.exponent == ExponentOnes && left.fraction != '0;
  assign right_nan = right.exponent == ExponentOnes && right.fraction != '0;

  logic [ExponentBits-1:0] left_exponent, right_exponent;
  assign left_exponent = left.exponent | ExponentBits'(left.exponent == '0);
  assign right_exponent = right.exponent | ExponentBits'(right.exponent == '0);

  float_t left_1_q, right_1_q;
  logic swap_1_q;
  logic [ExponentBits-1:0] left_excess_1_q, right_excess_1_q;
  special_t special_1_q;

  always_ff @(posedge clk_i) begin
    left_1_q <= left;
    right_1_q <= right;
    swap_1_q <= left_i[Width-2:0] < right_i[Width-2:0];
    left_excess_1_q <= left_exponent - right_exponent;
    right_excess_1_q <= right_exponent - left_exponent;
    special_1_q.nan <= left_nan || right_nan ||
        (left_infinite && right_infinite && left.negative != right.negative);
    special_1_q.infinite <= left_infinite || right_infinite;
  end

  // 2: the larger one first. Its exponent is the sum's, so far, and its sign too: an infinite one is
  // greater than all others.
  float_t larger, smaller;
  logic [ExponentBits-1:0] excess;
  assign larger = swap_1_q ? right_1_q : left_1_q;
  assign smaller = swap_1_q ? left_1_q : right_1_q;
  assign excess = swap_1_q ? right_excess_1_q : left_excess_1_q;

  logic [FractionBits:0] larger_2_q, smaller_2_q;
  logic [ExponentBits-1:0] exponent_2_q;
  logic [ShiftBits-1:0] shift_2_q;
  logic negative_2_q, subtract_2_q;
  special_t special_2_q;

  always_ff @(posedge clk_i) begin
    larger_2_q <= {larger.exponent != '0, larger.fraction};
    smaller_2_q <= {smaller.exponent != '0, smaller.fraction};
    exponent_2_q <= larger.exponent | ExponentBits'(larger.exponent == '0);
    shift_2_q <= excess > ExponentBits'(MaxShift) ? '1 : excess[ShiftBits-1:0];
    negative_2_q <= larger.negative;
    subtract_2_q <= larger.negative != smaller.negative;
    special_2_q <= special_1_q;
  end

  // 3: the smaller one to the right, by a multiple of four, within twice its width: what leaves it
  // makes it sticky. What leaves both is less than a quarter of the larger one's last bit, and the sum
  // the larger one, sticky or not.
  logic [SignificandBits-1:0] smaller_3_d, left_3_d;
  assign {smaller_3_d, left_3_d} =
      {smaller_2_q, 3'b0, {SignificandBits{1'b0}}} >> {shift_2_q[ShiftBits-1:2], 2'b0};

  logic [FractionBits:0] larger_3_q;
  logic [SignificandBits-1:0] smaller_3_q;
  logic sticky_3_q;
  logic [ExponentBits-1:0] exponent_3_q;
  logic [1:0] shift_3_q;
  logic negative_3_q, subtract_3_q;
  special_t special_3_q;

  always_ff @(posedge clk_i) begin
    larger_3_q <= larger_2_q;
    smaller_3_q <= smaller_3_d;
    sticky_3_q <= |left_3_d;
    exponent_3_q <= exponent_2_q;
    shift_3_q <= shift_2_q[1:0];
    negative_3_q <= negative_2_q;
    subtract_3_q <= subtract_2_q;
    special_3_q <= special_2_q;
  end

  // 4: the rest of the shift, and the sum or difference, which is not negative. The exponent's one
  // stands where the leading one may be at most, so that counting stops at subnormal numbers.
  logic [SignificandBits-1:0] smaller_4;
  logic [2:0] left_4;
  logic [SumBits-1:0] augend_4, addend_4;
  assign {smaller_4, left_4} = {smaller_3_q, 3'b0} >> shift_3_q;
  assign augend_4 = {1'b0, larger_3_q, 3'b0};
  assign addend_4 = {1'b0, smaller_4[SignificandBits-1:1], smaller_4[0] | sticky_3_q | (|left_4)};

  logic [SumBits-1:0] sum_4_q, stop_4_q;
  logic [ExponentBits-1:0] exponent_4_q;
  logic negative_4_q, subtract_4_q;
  special_t special_4_q;

  always_ff @(posedge clk_i) begin
    sum_4_q <= subtract_3_q ? augend_4 - addend_4 : augend_4 + addend_4;
    for (int unsigned i = 0; i < SumBits; ++i) begin
      stop_4_q[i] <= exponent_3_q == ExponentBits'(SumBits - 1 - i);
    end
    exponent_4_q <= exponent_3_q;
    negative_4_q <= negative_3_q;
    subtract_4_q <= subtract_3_q;
    special_4_q <= special_3_q;
  end

  // 5: by how much the sum goes to the left; a zero goes anywhere. A difference of equals is positive.
  logic [ShiftBits-1:0] zeros_5;
  sw_leading_zeros #(
    .Width(SumBits)
  ) u_leading_zeros (
    .vector_i(sum_4_q | stop_4_q),
    .count_o (zeros_5)
  );

  logic [SumBits-1:0] sum_5_q;
  logic [ExponentBits-1:0] exponent_5_q;
  logic [ShiftBits-1:0] shift_5_q;
  logic negative_5_q;
  special_t special_5_q;

  always_ff @(posedge clk_i) begin
    sum_5_q <= sum_4_q;
    exponent_5_q <= exponent_4_q;
    shift_5_q <= zeros_5;
    negative_5_q <= negative_4_q && (!subtract_4_q || sum_4_q != '0);
    special_5_q <= special_4_q;
  end

  // 6, 7: to the left, by a multiple of eight, then by the rest.
  logic [SumBits-1:0] sum_6_q, sum_7_q;
  logic [ExponentBits-1:0] exponent_6_q, exponent_7_q;
  logic [2:0] shift_6_q;
  logic negative_6_q, negative_7_q;
  special_t special_6_q, special_7_q;

  always_ff @(posedge clk_i) begin
    sum_6_q <= sum_5_q << {shift_5_q[ShiftBits-1:3], 3'b0};
    exponent_6_q <= exponent_5_q + 1'b1 - ExponentBits'(shift_5_q);
    shift_6_q <= shift_5_q[2:0];
    negative_6_q <= negative_5_q;
    special_6_q <= special_5_q;

    sum_7_q <= sum_6_q << shift_6_q;
    exponent_7_q <= exponent_6_q;
    negative_7_q <= negative_6_q;
    special_7_q <= special_6_q;
  end

  // 8: rounding carries from the fraction into the exponent, and from the greatest number into
  // infinity. Without a leading one the number is subnormal, or zero.
  logic leading, up, overflow, infinite;
  logic [FractionBits-1:0] fraction;
  logic [Width-2:0] rounded;
  assign leading = sum_7_q[SumBits-1];
  assign fraction = sum_7_q[SumBits-2:4];
  assign up = sum_7_q[3] && (sum_7_q[4] || (|sum_7_q[2:0]));
  assign rounded = {leading ? exponent_7_q : '0, fraction} + (Width - 1)'(up);
  assign overflow = leading && exponent_7_q == ExponentOnes;
  assign infinite = special_7_q.infinite || overflow;

  always_comb begin
    if (special_7_q.nan) begin
      sum_o = {1'b0, ExponentOnes, 1'b1, {(FractionBits - 1) {1'b0}}};
    end else if (infinite) begin
      sum_o = {negative_7_q, ExponentOnes, {FractionBits{1'b0}}};
    end else begin
      sum_o = {negative_7_q, rounded};
    end
  end

endmodule
