/// The sizes that a database's pages have.
struct PageFormat {
  /// The bytes of a page.
  let pageSize: Int

  /// The bytes of a page that structure and values use.
  let usableSize: Int

  let encoding: CheckedEncoding

  /// By the header; nil where it says nothing that can be.
  init?(header: Span<UInt8>) {
    guard let stored = Bytes.two(header, 16), header.count >= 100 else { return nil }
    let size = stored == 1 ? 65536 : stored
    guard size >= 512, size <= 65536, size & (size - 1) == 0, header[18] <= 2, header[19] <= 2, header[21] == 64,
      size - Int(header[20]) >= 480
    else { return nil }
    self.init(pageSize: size, reserved: Int(header[20]), encoding: CheckedEncoding(Bytes.four(header, 56)))
  }

  init(pageSize: Int, reserved: Int = 0, encoding: CheckedEncoding = .utf8) {
    self.pageSize = pageSize
    usableSize = pageSize - reserved
    self.encoding = encoding
  }

  /// How much of a payload is on the page of its cell.
  func localLength(of payload: Int, isTableLeaf: Bool) -> Int {
    let most = isTableLeaf ? usableSize - 35 : (usableSize - 12) * 64 / 255 - 23
    if payload <= most { return payload }
    let least = (usableSize - 12) * 32 / 255 - 23
    let rest = least + (payload - least) % (usableSize - 4)
    return rest <= most ? rest : least
  }
}
