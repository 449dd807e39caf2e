// SPDX-License-Identifier: Apache-2.0
//
// An AXI4-Stream as one of wider beats: each of several beats, the first one lowest, or of fewer, where a
// frame ends.
//
// Beats, either way, are as sw_parser's words: keep is all ones but in a frame's last beat, where it has the
// frame's last bytes in front. keep's bits go with their bytes, whatever they are. A wide beat is offered a cycle
// after the last one of it was taken, and the next one begins in the cycle in which it leaves: a beat is
// taken each cycle.
module sw_widen #(
  parameter  int unsigned FromBits = 8,
  parameter  int unsigned ToBits = 64,
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

  localparam int unsigned Parts = ToBits / FromBits;

  if (FromBits % 8 != 0 || Parts < 2 || ToBits % FromBits != 0) begin : g_bad_bits
    $error("a beat has several parts of whole bytes");
  end

  logic valid_q, last_q, takes, is_whole;
  logic [Parts-1:0][FromBits-1:0] data_q;
  logic [Parts-1:0][FromBytes-1:0] keep_q;
  logic [Parts-1:0] is_at_q;  // the next part, one bit each

  assign s_ready_o = !valid_q || m_ready_i;
  assign takes = s_valid_i && s_ready_o;
  assign is_whole = s_last_i || is_at_q[Parts-1];
  assign m_valid_o = valid_q;
  assign m_data_o = data_q;
  assign m_keep_o = keep_q;
  assign m_last_o = last_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      valid_q <= 1'b0;
      is_at_q <= Parts'(1);
    end else begin
      if (s_ready_o) valid_q <= takes && is_whole;
      if (takes) is_at_q <= is_whole ? Parts'(1) : is_at_q << 1;
    end
  end
  always_ff @(posedge clk_i) begin
    if (takes) begin
      last_q <= s_last_i;
      for (int unsigned i = 0; i < Parts; ++i) begin
        if (is_at_q[0]) keep_q[i] <= '0;
        if (is_at_q[i]) {keep_q[i], data_q[i]} <= {s_keep_i, s_data_i};
      end
    end
  end

  keep_is_whole :
  assert property (@(posedge clk_i) disable iff (!rst_ni) s_valid_i |->
      s_last_i ? s_keep_i[0] && (s_keep_i & (s_keep_i + 1'b1)) == '0 : &s_keep_i);
  offered_stays :
  assert property (@(posedge clk_i) disable iff (!rst_ni) m_valid_o && !m_ready_i |=>
      m_valid_o && $stable(m_data_o) && $stable(m_keep_o) && $stable(m_last_o));

endmodule
