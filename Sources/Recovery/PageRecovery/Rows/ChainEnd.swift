internal import SQLiteFormat

/// A page of a row's overflow chain, mostly the last one, and what the content must be that belongs there.
///
/// The pages before the last one lead to one another; the last one leads nowhere, and only its content tells whose it is.
struct ChainEnd {
  /// The number of the page.
  var page: UInt32

  /// How many bytes of content the row has on it.
  var used: Int

  /// What stands in the row right before those bytes.
  let before: [UInt8]

  /// The fields of the row that reach into the page.
  let fields: [Field]

  let encoding: TextEncoding

  /// The number of the tree that the row is of.
  let tree: Int

  /// A field of the record, its place relative to the page's content.
  struct Field {
    /// Its number in the record.
    var number: Int

    var code: Int64

    /// Where its bytes are; the content of the page begins at 0.
    var range: Range<Int>

    var isText: Bool { code >= 13 && code & 1 == 1 }
    var isBlob: Bool { code >= 12 && code & 1 == 0 }
  }

  /// What a content looks like in this place.
  struct Judgement {
    /// The share of character sequences that are usual in this store; 0.5 where there is no text to tell by.
    var share: Double

    /// Whether it contradicts what is known of the row: text that is not valid or goes on where it should end, bytes behind
    /// the value's end, numbers that SQLite would have written otherwise.
    var isBroken: Bool

    /// Whether the value ends just where the bytes do.
    var endsExactly = false

    /// Whether it can well be the right content.
    var isGood: Bool { !isBroken && (share >= 0.75 || endsExactly && share >= 0.5) }

    /// Whether it is hardly the right content.
    var isBad: Bool { isBroken || share < 0.5 }

    /// A number to compare judgements by.
    var value: Double {
      let value = endsExactly ? max(share, min(1, share + 0.4)) : share
      return isBroken ? value * 0.25 : value
    }
  }

  /// What is to be known of a page of a chain.
  ///
  /// - Parameters:
  ///   - payload: the whole payload, as far as it has been put together.
  ///   - start: where in the payload the page's content begins; nil where the page is the last one.
  ///   - used: how many bytes of it are on the page.
  init?(
    _ payload: Span<UInt8>, page: UInt32, start: Int? = nil, used: Int, encoding: TextEncoding, tree: Int = 0
  ) {
    self.page = page
    self.used = used
    self.encoding = encoding
    self.tree = tree
    let start = start ?? payload.count - used
    guard used > 0, start > 0, start + used <= payload.count else { return nil }
    var offset = 0
    guard let header = Varint.read(payload, at: &offset, before: payload.count), header > 0,
      header <= Int64(start)
    else { return nil }
    var body = Int(header)
    var number = 0
    var fields: [Field] = []
    while offset < Int(header) {
      guard let code = Varint.read(payload, at: &offset, before: Int(header)),
        let width = SerialType.length(of: code), width <= payload.count - body
      else { return nil }
      if body + width > start, body < start + used {
        fields.append(Field(number: number, code: code, range: (body - start)..<(body + width - start)))
      }
      body += width
      number += 1
    }
    self.fields = fields
    let kept = min(24, start)
    before = Array(copying: payload.extracting((start - kept)..<start))
  }
}
