// SPDX-License-Identifier: Apache-2.0
//
// Whose turn it is: the first that asks after the one whose turn was last; who asks waits
// for Ports - 1 turns at most. turn_o is there without a clock, and anything if nobody asks.
module sw_round_robin #(
  parameter  int unsigned Ports = 18,
  localparam int unsigned PortBits = Ports > 1 ? $clog2(Ports) : 1
) (
  input  logic                clk_i,
  input  logic                rst_ni,
  input  logic [Ports-1:0]    asks_i,
  input  logic                take_i,
  output logic [PortBits-1:0] turn_o
);

  logic [PortBits-1:0] last_q;

  always_comb begin
    turn_o = '0;
    for (int unsigned i = Ports; i > 0; --i) if (asks_i[i-1]) turn_o = PortBits'(i - 1);
    for (int unsigned i = Ports; i > 0; --i) begin
      if (asks_i[i-1] && PortBits'(i - 1) > last_q) turn_o = PortBits'(i - 1);
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      last_q <= PortBits'(Ports - 1);
    end else if (take_i) begin
      last_q <= turn_o;
    end
  end

endmodule
