// SPDX-License-Identifier: Apache-2.0
//
// A port's part of a frame that leaves by several ports at once: who gets it, in Ethernet's, IPv4's
// and UDP's headers, and which of its words the port has taken.
//
// address_i is who gets the frame, from two cycles before its first word on; with first_i it is
// first_address_i. sum_i is IPv4's of all but the destination. valid_i is 1 for each word, data_i, of which
// own_i is each port's own, until next_i: all ports have taken it. taken_o is 1 if this one has, or does.
module sw_outlet
  import sw_switch_pkg::*;
(
  input  logic        clk_i,
  input  logic        rst_ni,
  input  address_t    address_i,
  input  logic        first_i,
  input  address_t    first_address_i,
  input  logic [19:0] sum_i,
  input  logic        valid_i,
  input  own_e        own_i,
  input  word_t       data_i,
  input  logic        next_i,
  output logic        taken_o,
  output logic        m_valid_o,
  input  logic        m_ready_i,
  output word_t       m_data_o
);

  address_t to_q;
  logic [19:0] sum_q;
  logic [16:0] folded;
  logic [15:0] checksum_q;
  logic taken_q, unused_port;
  word_t data, changed;

  assign unused_port = ^to_q.port;
  assign folded = 17'(sum_q[15:0]) + 17'(sum_q[19:16]);
  always_ff @(posedge clk_i) begin
    to_q <= first_i ? first_address_i : address_i;
    sum_q <= sum_i + 20'(to_q.ip[31:16]) + 20'(to_q.ip[15:0]);
    checksum_q <= ~(folded[15:0] + 16'(folded[16]));
  end

  assign m_valid_o = valid_i && !taken_q;
  assign taken_o = taken_q || m_ready_i;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      taken_q <= 1'b0;
    end else begin
      taken_q <= valid_i && taken_o && !next_i;
    end
  end

  // Words with the first byte highest.
  assign data = swapped(data_i);
  always_comb begin
    changed = data;
    unique case (own_i)
      OwnMac:       changed[63:16] = to_q.mac;
      OwnChecksum:  {changed[63:48], changed[15:0]} = {checksum_q, to_q.ip[31:16]};
      OwnIpAndPort: {changed[63:48], changed[31:16]} = {to_q.ip[15:0], to_q.udp_port};
      default: ;
    endcase
  end
  assign m_data_o = swapped(changed);

  offered_stays :
  assert property (@(posedge clk_i) disable iff (!rst_ni) m_valid_o && !m_ready_i |=>
      m_valid_o && $stable(m_data_o));

endmodule
