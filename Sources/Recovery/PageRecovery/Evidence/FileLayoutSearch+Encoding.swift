internal import SQLiteFormat

extension FileLayoutSearch {
  /// The encoding that the header states, unless the texts contradict it.
  ///
  /// The schema's own words go first: `table` and `index` are written in the encoding of all text. Where none of them can be
  /// read, UTF-16 has no odd number of bytes, and no other encoding a zero in every second byte.
  func encoding(_ header: DatabaseHeader?, _ vote: Vote) -> TextEncoding {
    if let written = vote.schemaEncoding { return written }
    guard let stated = header?.encoding else { return vote.encoding }
    switch stated {
    case .utf8:
      let wide = max(vote.encodings[1], vote.encodings[2])
      return wide > 8 && wide > 4 * vote.encodings[0] ? vote.encoding : stated
    case .utf16LittleEndian, .utf16BigEndian:
      if vote.oddTexts > 4, vote.oddTexts * 10 > vote.encodings.reduce(0, +) { return .utf8 }
      let (own, other) =
        stated == .utf16BigEndian
        ? (vote.encodings[2], vote.encodings[1]) : (vote.encodings[1], vote.encodings[2])
      return other > 8 && other > 4 * own ? (stated == .utf16BigEndian ? .utf16LittleEndian : .utf16BigEndian) : stated
    }
  }
}
