// SPDX-License-Identifier: Apache-2.0
//
// Frames of several ports, one after the other, whole ones in turn: m_from_o is which of the ports the
// word is of. Streams are AXI4-Streams as sw_parser's; a port that begins with a frame holds up the others
// until its end.
module sw_gather
  import sw_switch_pkg::*;
#(
  parameter  int unsigned Ports = 3,
  localparam int unsigned PortBits = Ports > 1 ? $clog2(Ports) : 1
) (
  input  logic                            clk_i,
  input  logic                            rst_ni,
  input  logic [Ports-1:0]                s_valid_i,
  output logic [Ports-1:0]                s_ready_o,
  input  word_t [Ports-1:0]               s_data_i,
  input  logic [Ports-1:0][WordBytes-1:0] s_keep_i,
  input  logic [Ports-1:0]                s_last_i,
  output logic                            m_valid_o,
  input  logic                            m_ready_i,
  output word_t                           m_data_o,
  output logic [WordBytes-1:0]            m_keep_o,
  output logic                            m_last_o,
  output logic [PortBits-1:0]             m_from_o
);

  typedef struct packed {
    word_t                data;
    logic [WordBytes-1:0] keep;
    logic                 last;
    logic [PortBits-1:0]  from;
  } entry_t;

  logic comes_q, chooses, moves, ready, ends;
  logic [PortBits-1:0] from_q, turn;
  logic [Ports-1:0] is_from_q;
  entry_t entry, out;

  assign chooses = !comes_q && s_valid_i != '0;
  assign moves = comes_q && (s_valid_i & is_from_q) != '0 && ready;
  assign ends = moves && (s_last_i & is_from_q) != '0;
  assign s_ready_o = comes_q && ready ? is_from_q : '0;

  sw_round_robin #(
    .Ports(Ports)
  ) u_round_robin (
    .clk_i,
    .rst_ni,
    .asks_i(s_valid_i),
    .take_i(chooses),
    .turn_o(turn)
  );

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      comes_q <= 1'b0;
    end else begin
      comes_q <= chooses || (comes_q && !ends);
    end
  end
  always_ff @(posedge clk_i) begin
    if (chooses) begin
      from_q <= turn;
      is_from_q <= Ports'(1) << turn;
    end
  end

  always_comb begin
    entry = '0;
    for (int unsigned i = 0; i < Ports; ++i) begin
      if (is_from_q[i]) begin
        entry.data |= s_data_i[i];
        entry.keep |= s_keep_i[i];
        entry.last |= s_last_i[i];
      end
    end
    entry.from = from_q;
  end

  sw_skid #(
    .Width($bits(entry_t))
  ) u_skid (
    .clk_i,
    .rst_ni,
    .valid_i(comes_q && (s_valid_i & is_from_q) != '0),
    .ready_o(ready),
    .value_i(entry),
    .valid_o(m_valid_o),
    .ready_i(m_ready_i),
    .value_o(out)
  );
  assign {m_data_o, m_keep_o, m_last_o, m_from_o} = out;

endmodule
