/// Reads a header line by line, in its one canonical form.
struct AgeHeaderReader {
  private let bytes: [UInt8]
  private var position = 0

  init(_ bytes: [UInt8]) { self.bytes = bytes }

  mutating func read() throws(AgeError) -> (header: AgeHeader, length: Int)? {
    guard let version = try nextLine() else {
      let expected = Array((AgeHeader.version + "\n").utf8)
      guard expected.starts(with: bytes.prefix(expected.count)) else { throw Self.notAge }
      return nil
    }
    guard version == AgeHeader.version else { throw Self.notAge }
    var stanzas: [AgeStanza] = []
    while true {
      let start = position
      guard let line = try nextLine() else { return nil }
      if line.hasPrefix("-> ") {
        guard stanzas.count < AgeHeader.stanzaLimit else {
          throw AgeError(.headerTooLarge, "the header has more than \(AgeHeader.stanzaLimit) stanzas")
        }
        guard let stanza = try stanza(line.dropFirst(3)) else { return nil }
        stanzas.append(stanza)
      } else if line.hasPrefix("--- ") {
        guard !stanzas.isEmpty else { throw AgeError(.header, "the header has no stanza") }
        guard let sum = UnpaddedBase64.decode(line.dropFirst(4)), sum.count == 32 else {
          throw AgeError(.header, "the header's sum is not one of 32 bytes")
        }
        let header = AgeHeader(stanzas: stanzas, sum: sum, summed: Array(bytes[..<(start + 3)]))
        return (header, position)
      } else {
        throw AgeError(.header, "a line of the header is neither a stanza nor its end")
      }
    }
  }

  private static let notAge = AgeError(.header, "it does not begin as an age file of version 1 does")

  private mutating func stanza(_ line: Substring) throws(AgeError) -> AgeStanza? {
    let arguments = line.split(separator: " ", omittingEmptySubsequences: false).map(String.init)
    guard arguments.allSatisfy({ !$0.isEmpty && $0.utf8.allSatisfy { (33...126).contains($0) } }) else {
      throw AgeError(.header, "a stanza has an argument that is empty or not plain text")
    }
    var body: [UInt8] = []
    while true {
      guard let line = try nextLine() else { return nil }
      guard line.utf8.count <= 64, let part = UnpaddedBase64.decode(line) else {
        throw AgeError(.header, "a stanza's body is not base64 in lines of 64 characters")
      }
      body += part
      if line.utf8.count < 64 { return AgeStanza(arguments: arguments, body: body) }
    }
  }

  /// The next line without its end; nil where it is not whole.
  private mutating func nextLine() throws(AgeError) -> String? {
    guard let end = bytes[position...].firstIndex(of: UInt8(ascii: "\n")) else {
      guard bytes.count <= AgeHeader.lengthLimit else { throw Self.tooLong }
      return nil
    }
    guard end < AgeHeader.lengthLimit else { throw Self.tooLong }
    let line = bytes[position..<end]
    guard line.allSatisfy({ (32...126).contains($0) }) else {
      throw AgeError(.header, "the header has characters that are not plain text")
    }
    position = end + 1
    return String(decoding: line, as: UTF8.self)
  }

  private static let tooLong = AgeError(
    .headerTooLarge, "the header is longer than \(AgeHeader.lengthLimit) bytes")
}
