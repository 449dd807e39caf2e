// SPDX-License-Identifier: Apache-2.0
//
// An AXI4-Stream as one of beats of another width, of 8 bits and a power of two of these: narrower ones
// (sw_narrow), wider ones (sw_widen), or the same, without anything between.
module sw_width #(
  parameter  int unsigned FromBits = 64,
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

  if (FromBits == ToBits) begin : g_same
    assign m_valid_o = s_valid_i;
    assign s_ready_o = m_ready_i;
    assign m_data_o = s_data_i;
    assign m_keep_o = s_keep_i;
    assign m_last_o = s_last_i;
    logic unused_clock;
    assign unused_clock = ^{clk_i, rst_ni};
  end else if (FromBits > ToBits) begin : g_narrow
    sw_narrow #(
      .FromBits(FromBits),
      .ToBits(ToBits)
    ) u_narrow (
      .clk_i,
      .rst_ni,
      .s_valid_i,
      .s_ready_o,
      .s_data_i,
      .s_keep_i,
      .s_last_i,
      .m_valid_o,
      .m_ready_i,
      .m_data_o,
      .m_keep_o,
      .m_last_o
    );
  end else begin : g_widen
    sw_widen #(
      .FromBits(FromBits),
      .ToBits(ToBits)
    ) u_widen (
      .clk_i,
      .rst_ni,
      .s_valid_i,
      .s_ready_o,
      .s_data_i,
      .s_keep_i,
      .s_last_i,
      .m_valid_o,
      .m_ready_i,
      .m_data_o,
      .m_keep_o,
      .m_last_o
    );
  end

endmodule
