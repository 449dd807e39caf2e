// SPDX-License-Identifier: Apache-2.0
//
// The number of zeros above the highest one of a vector, without a clock; a vector without a one has
// a count of no meaning. A balanced tree of halves: its depth is the logarithm of the width.
module sw_leading_zeros #(
  parameter  int unsigned Width = 57,
  localparam int unsigned CountBits = $clog2(Width)
) (
  input  logic [Width-1:0]     vector_i,
  output logic [CountBits-1:0] count_o
);

  localparam int unsigned Padded = 1 << CountBits;

  // Zeros below the vector change no count.
  logic [Padded-1:0] padded;
  assign padded = {vector_i, {(Padded - Width) {1'b0}}};

  for (genvar level = 0; level <= CountBits; ++level) begin : g_level
    localparam int unsigned Nodes = Padded >> level;
    logic [Nodes-1:0] any;
    // One bit more than is needed, since the lowest level needs none.
    logic [Nodes-1:0][level:0] zeros;

    if (level == 0) begin : g_leaves
      assign any = padded;
      assign zeros = '0;
    end else begin : g_nodes
      for (genvar i = 0; i < Nodes; ++i) begin : g_node
        assign any[i] = |g_level[level-1].any[2*i+1:2*i];
        assign zeros[i] = g_level[level-1].any[2*i+1]
            ? {1'b0, g_level[level-1].zeros[2*i+1]}
            : {1'b0, g_level[level-1].zeros[2*i]} | (level + 1)'(1 << (level - 1));
      end
    end
  end

  logic unused_zero, unused_any;
  assign {unused_zero, count_o} = g_level[CountBits].zeros[0];
  assign unused_any = g_level[CountBits].any[0];

endmodule
