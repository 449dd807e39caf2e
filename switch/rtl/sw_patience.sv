// SPDX-License-Identifier: Apache-2.0
//
// A frame whose first word waits at a port (waits_i), as there is no room for it: after patience_i
// cycles, or never if that is all ones, it is taken and dropped, word by word. drops_o is 1 meanwhile, and
// overrun_o for the cycle of its last word.
module sw_patience (
  input  logic        clk_i,
  input  logic        rst_ni,
  input  logic [15:0] patience_i,
  input  logic        waits_i,
  input  logic        s_valid_i,
  input  logic        s_last_i,
  output logic        drops_o,
  output logic        overrun_o
);

  logic [15:0] waited_q;

  assign overrun_o = drops_o && s_valid_i && s_last_i;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      drops_o <= 1'b0;
      waited_q <= '0;
    end else if (drops_o) begin
      drops_o <= !overrun_o;
      waited_q <= '0;
    end else if (!waits_i || &patience_i) begin
      waited_q <= '0;
    end else begin
      drops_o <= waited_q >= patience_i;  // which may have become less
      waited_q <= waited_q + 1'b1;
    end
  end

endmodule
