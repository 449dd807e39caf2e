// SPDX-License-Identifier: Apache-2.0
//
// An AXI4-Stream as one of narrower beats: a beat's parts of ToBits, the lowest first.
//
// Beats, either way, are as sw_parser's words: keep is all ones but in a frame's last beat, where it has the
// frame's last bytes in front. Of that one the parts with bytes come, the last of them with m_last_o. keep's
// bits go with their bytes, whatever they are: of a beat that is not the last one all parts come, of the
// last one those up to the highest bit of keep, and one at least. The first part is offered a cycle after its beat was
// taken, and a beat is taken in the cycle of the last part of the one before: a part leaves each cycle.
module sw_narrow #(
  parameter  int unsigned FromBits = 64,
  parameter  int unsigned ToBits = 8,
  localparam int unsigned FromBytes = FromBits / 8,
  localparam int unsigned ToBytes = ToBits / 8
) (
  input  logic                 clk_i,
  input  logic                 rst_ni,
  input  logic                 s_valid_i,
  output logic                 s_ready_o,
  input  logic [FromBits-1:0]  s_data_i,
  input  logic [FromBytes-1:0] s_keep_i,
  input  logic                 s_last_i,
  output logic                 m_valid_o,
  input  logic                 m_ready_i,
  output logic [ToBits-1:0]    m_data_o,
  output logic [ToBytes-1:0]   m_keep_o,
  output logic                 m_last_o
);

  localparam int unsigned Parts = FromBits / ToBits;

  if (ToBits % 8 != 0 || Parts < 2 || FromBits % ToBits != 0) begin : g_bad_bits
    $error("a beat has several parts of whole bytes");
  end

  // What is left of a beat, and its parts behind the one that is offered, a bit each.
  logic valid_q, last_q, is_last_part;
  logic [FromBits-1:0] data_q;
  logic [FromBytes-1:0] keep_q;
  logic [Parts-2:0] behind_q, behind;

  assign is_last_part = !behind_q[0];
  assign s_ready_o = !valid_q || (m_ready_i && is_last_part);
  assign m_valid_o = valid_q;
  assign m_data_o = data_q[ToBits-1:0];
  assign m_keep_o = keep_q[ToBytes-1:0];
  assign m_last_o = last_q && is_last_part;

  for (genvar i = 0; i < Parts - 1; ++i) begin : g_behind
    assign behind[i] = !s_last_i || s_keep_i[FromBytes-1:(i+1)*ToBytes] != '0;
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      valid_q <= 1'b0;
    end else if (s_ready_o) begin
      valid_q <= s_valid_i;
    end
  end
  always_ff @(posedge clk_i) begin
    if (s_ready_o) begin
      {last_q, behind_q, keep_q, data_q} <= {s_last_i, behind, s_keep_i, s_data_i};
    end else if (m_ready_i) begin
      behind_q <= behind_q >> 1;
      keep_q <= keep_q >> ToBytes;
      data_q <= data_q >> ToBits;
    end
  end

  keep_is_whole :
  assert property (@(posedge clk_i) disable iff (!rst_ni) s_valid_i |->
      s_last_i ? s_keep_i[0] && (s_keep_i & (s_keep_i + 1'b1)) == '0 : &s_keep_i);
  each_part_has_bytes :
  assert property (@(posedge clk_i) disable iff (!rst_ni) m_valid_o |-> m_keep_o != '0);
  offered_stays :
  assert property (@(posedge clk_i) disable iff (!rst_ni) m_valid_o && !m_ready_i |=>
      m_valid_o && $stable(m_data_o) && $stable(m_keep_o) && $stable(m_last_o));

endmodule
