// SPDX-License-Identifier: Apache-2.0
//
// A frame's words to several ports at once: the next word when the last port of to_i has taken this one.
//
// Words come from sw_builder. to_i, and who gets the frame, as each port's sw_outlet has it, stay until
// done_o: the last word is taken. m_keep_o and m_last_o are those of all ports whose m_valid_o is 1. With
// FastClock a word takes two cycles at least.
module sw_spread
  import sw_switch_pkg::*;
#(
  parameter  int unsigned Ports = 18,
  parameter  int unsigned FastClock = 0,
  localparam int unsigned Addresses = FastClock != 0 ? 1 : Ports
) (
  input  logic                     clk_i,
  input  logic                     rst_ni,
  input  logic                     valid_i,
  output logic                     ready_o,
  input  own_e                     own_i,
  input  word_t                    data_i,
  input  logic [WordBytes-1:0]     keep_i,
  input  logic                     last_i,
  input  logic [Ports-1:0]         to_i,
  input  logic                     first_i,
  input  address_t [Ports-1:0]     first_addresses_i,
  input  address_t [Addresses-1:0] addresses_i,
  input  logic [19:0]              sum_i,
  output logic                     done_o,
  output logic [Ports-1:0]         m_valid_o,
  input  logic [Ports-1:0]         m_ready_i,
  output word_t [Ports-1:0]        m_data_o,
  output logic [WordBytes-1:0]     m_keep_o,
  output logic                     m_last_o
);

  logic valid, taken_by_all;
  logic [Ports-1:0] taken;
  word_t data;
  logic [$bits(own_e)-1:0] own;

  sw_skid #(
    .Width(WordBits + $bits(own_e) + WordBytes + 1)
  ) u_skid (
    .clk_i,
    .rst_ni,
    .valid_i,
    .ready_o,
    .value_i({data_i, own_i, keep_i, last_i}),
    .valid_o(valid),
    .ready_i(taken_by_all),
    .value_o({data, own, m_keep_o, m_last_o})
  );
  assign done_o = valid && taken_by_all && m_last_o;

  for (genvar port = 0; port < Ports; ++port) begin : g_outlet
    sw_outlet u_outlet (
      .clk_i,
      .rst_ni,
      .address_i(addresses_i[Addresses==1?0:port]),
      .first_i,
      .first_address_i(first_addresses_i[port]),
      .sum_i,
      .valid_i  (valid && to_i[port]),
      .own_i    (own_e'(own)),
      .data_i   (data),
      .next_i   (taken_by_all),
      .taken_o  (taken[port]),
      .m_valid_o(m_valid_o[port]),
      .m_ready_i(m_ready_i[port]),
      .m_data_o (m_data_o[port])
    );
  end

  if (FastClock != 0) begin : g_taken_later
    // A cycle after the last port has taken it.
    always_ff @(posedge clk_i or negedge rst_ni) begin
      if (!rst_ni) begin
        taken_by_all <= 1'b0;
      end else begin
        taken_by_all <= valid && !taken_by_all && (taken | ~to_i) == '1;
      end
    end
  end else begin : g_taken_now
    assign taken_by_all = (taken | ~to_i) == '1;
  end

endmodule
