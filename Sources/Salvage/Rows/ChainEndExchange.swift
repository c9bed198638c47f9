import SQLiteFormat

/// Exchanges chain tails that fit each other's place much better.
struct ChainEndExchange {
  /// Each suspect keeps a page in memory.
  private static let maximumSuspects = 256

  /// The minimum gain of an exchange, and its lead over any other.
  private static let leastGain = 0.3
  private static let leastLead = 0.1

  let context: RowContext

  let statistics: TextStatistics

  let traits: ChainTraits

  /// The digests of tails in more than one place.
  let copies: Set<UInt64>

  private var reader: PageReader { context.reader }

  private struct Offer {
    /// The other row; nil for a page without one.
    var other: Int?

    var place: UInt32

    /// The improvement for both rows.
    var gain: Double
    var mine: ChainEnd.Judgement
    var theirs: ChainEnd.Judgement?
  }

  private struct Suspect {
    var row: Int

    /// Empty for a copy, which has no other origin.
    var content: [UInt8]

    /// The best exchange, and the gain of the second best.
    var best: Offer?
    var secondGain = 0.0

    mutating func consider(_ offer: Offer) {
      if offer.gain > best?.gain ?? 0 {
        secondGain = best?.gain ?? 0
        best = offer
      } else {
        secondGain = max(secondGain, offer.gain)
      }
    }
  }

  func run(_ waiting: inout [WaitingRow]) throws -> Bool {
    var suspects = try suspects(among: waiting)
    guard !suspects.isEmpty else { return false }
    var buffer = reader.makeBuffer()
    for other in waiting.indices where reader.moved[waiting[other].end.page] == nil {
      let page = waiting[other].end.page
      guard try reader.readPlace(page, into: &buffer), !copies.contains(context.digest(ofPage: buffer)) else {
        continue
      }
      consider(page, buffer, of: other, waiting, &suspects)
    }
    for page in context.abandonedPages() where reader.moved[page] == nil {
      guard try reader.readPlace(page, into: &buffer), buffer.span.uint32(at: 0) == 0,
        !copies.contains(context.digest(ofPage: buffer))
      else { continue }
      consider(page, buffer, of: nil, waiting, &suspects)
    }
    return exchange(suspects, &waiting)
  }

  private func suspects(among waiting: [WaitingRow]) throws -> [Suspect] {
    let rows = waiting.indices.filter { waiting[$0].isSuspect && reader.moved[waiting[$0].end.page] == nil }
      .sorted { waiting[$0].judgement.value < waiting[$1].judgement.value }
      .prefix(Self.maximumSuspects)
    var suspects: [Suspect] = []
    for row in rows {
      var buffer = reader.makeBuffer()
      _ = try reader.read(waiting[row].end.page, into: &buffer)
      suspects.append(Suspect(row: row, content: copies.contains(context.digest(ofPage: buffer)) ? [] : buffer))
    }
    return suspects
  }

  /// Tries a content for all suspects.
  ///
  /// - Parameter other: the row that has it now.
  private func consider(
    _ place: UInt32, _ content: [UInt8], of other: Int?, _ waiting: [WaitingRow], _ suspects: inout [Suspect]
  ) {
    for number in suspects.indices where suspects[number].row != other {
      let suspect = suspects[number]
      let row = waiting[suspect.row]
      let mine = row.end.judge(content, statistics, traits)
      guard mine.isGood else { continue }
      var offer = Offer(other: other, place: place, gain: mine.value - row.judgement.value, mine: mine)
      if let other {
        guard let theirs = judge(suspect.content, at: waiting[other]) else { continue }
        offer.gain += theirs.value - waiting[other].judgement.value
        offer.theirs = theirs
      }
      suspects[number].consider(offer)
    }
  }

  /// Returns how well a suspect's content fits another row.
  private func judge(_ content: [UInt8], at other: WaitingRow) -> ChainEnd.Judgement? {
    guard !content.isEmpty else { return nil }
    let judged = other.end.judge(content, statistics, traits)
    // Content that fits its place well came from no other.
    guard !other.judgement.isGood || judged.value >= other.judgement.value,
      judged.isGood || judged.value >= other.judgement.value
    else { return nil }
    return judged
  }

  private func exchange(_ suspects: [Suspect], _ waiting: inout [WaitingRow]) -> Bool {
    var isChanged = false
    for suspect in suspects.sorted(by: { ($0.best?.gain ?? 0) > ($1.best?.gain ?? 0) }) {
      let page = waiting[suspect.row].end.page
      guard let offer = suspect.best, offer.gain >= Self.leastGain,
        offer.gain - suspect.secondGain >= Self.leastLead || isMutual(offer, suspect, suspects),
        reader.moved[page] == nil, reader.moved[offer.place] == nil
      else { continue }
      reader.moved[page] = offer.place
      reader.moved[offer.place] = page
      waiting[suspect.row].judgement = offer.mine
      if let other = offer.other, let theirs = offer.theirs { waiting[other].judgement = theirs }
      context.crawl.map.claim(offer.place, .overflow, owner: waiting[suspect.row].row.tree)
      isChanged = true
    }
    return isChanged
  }

  /// Whether each row is the other's best match.
  private func isMutual(_ offer: Offer, _ suspect: Suspect, _ suspects: [Suspect]) -> Bool {
    guard let other = offer.other, let theirs = suspects.first(where: { $0.row == other }) else { return false }
    return theirs.best?.other == suspect.row
  }
}

/// An assembled row with a long value, checked again before it is written because pages of the store changed places.
struct WaitingRow {
  var row: FoundRow

  var end: ChainEnd

  /// The assessment of the present content.
  var judgement = ChainEnd.Judgement(share: 0.5, isBroken: false)

  var doubt: String?

  /// Whether other content may fit better; random bytes fit nowhere.
  var isSuspect: Bool { judgement.isBad || !judgement.isGood && end.fields.contains { $0.isText } }
}
