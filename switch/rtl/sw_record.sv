// SPDX-License-Identifier: Apache-2.0
//
// A wide register: value_o is value_i of the last cycle after one in which takes_next_i was 1. Bits that lie
// together have an enable of their own (sw_enables), so that none of them reaches across a chip.
module sw_record #(
  parameter  int unsigned Width = 64,
  parameter  int unsigned EnabledBits = 64,
  localparam int unsigned Parts = (Width + EnabledBits - 1) / EnabledBits
) (
  input  logic             clk_i,
  input  logic             takes_next_i,
  input  logic [Width-1:0] value_i,
  output logic [Width-1:0] value_o
);

  logic [Parts-1:0] takes_q;
  sw_enables #(
    .Copies(Parts)
  ) u_takes (
    .clk_i,
    .enable_i (takes_next_i),
    .enables_o(takes_q)
  );

  for (genvar i = 0; i < Width; ++i) begin : g_bit
    always_ff @(posedge clk_i) if (takes_q[i/EnabledBits]) value_o[i] <= value_i[i];
  end

endmodule
