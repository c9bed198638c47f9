import SQLiteFormat

/// Exchanges the ends of chains that fit each other's place much better than their own.
struct ChainEndExchange {
  /// How many rows are doubted at most; each has its last page in memory.
  private static let maximumSuspects = 256

  /// How much better the two rows of an exchange must look for it, and how much better than with any other.
  private static let leastGain = 0.3
  private static let leastLead = 0.1

  let context: RowContext

  /// What texts look like in this store.
  let statistics: TextStatistics

  /// What the ends of chains are like in this store.
  let traits: ChainTraits

  /// The digests of ends that stand at more than one place.
  let copies: Set<UInt64>

  private var reader: PageReader { context.reader }

  private struct Offer {
    /// The other row; nil for a page that no row has.
    var other: Int?

    /// The page that the content would come from.
    var place: UInt32

    /// How much better both rows would look.
    var gain: Double
    var mine: ChainEnd.Judgement
    var theirs: ChainEnd.Judgement?
  }

  private struct Suspect {
    /// Its number among the rows.
    var row: Int

    /// What stands at its end now; empty for a copy, which has come from no other place.
    var content: [UInt8]

    /// The best exchange, and how much the second best would gain.
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

  /// Looks for exchanges once; whether any was made.
  func run(_ waiting: inout [WaitingRow]) throws(SalvageError) -> Bool {
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

  private func suspects(among waiting: [WaitingRow]) throws(SalvageError) -> [Suspect] {
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

  /// Tries a content at the ends of all suspects.
  ///
  /// - Parameter other: the row that has it now; nil for none.
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

  /// How well a suspect's content fits the end of another row; nil where it does not belong there.
  private func judge(_ content: [UInt8], at other: WaitingRow) -> ChainEnd.Judgement? {
    guard !content.isEmpty else { return nil }
    let judged = other.end.judge(content, statistics, traits)
    // What fits its place already has not left another one.
    guard !other.judgement.isGood || judged.value >= other.judgement.value,
      judged.isGood || judged.value >= other.judgement.value
    else { return nil }
    return judged
  }

  /// Makes the exchanges that are decisive, the best first; whether there was any.
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

  /// Whether each of the two rows is best served by the other one.
  private func isMutual(_ offer: Offer, _ suspect: Suspect, _ suspects: [Suspect]) -> Bool {
    guard let other = offer.other, let theirs = suspects.first(where: { $0.row == other }) else { return false }
    return theirs.best?.other == suspect.row
  }
}

/// A row whose long value could be put together, and is looked at again before it is written, because pages of the store
/// are known to have changed places.
struct WaitingRow {
  var row: FoundRow

  /// The end of its chain.
  var end: ChainEnd

  /// How well the content fits that stands there now.
  var judgement = ChainEnd.Judgement(share: 0.5, isBroken: false)

  /// Why it is not to be believed; nil where it is.
  var doubt: String?

  /// Whether another content may fit better: nothing but bytes without any pattern can fill a page so that none does.
  var isSuspect: Bool { judgement.isBad || !judgement.isGood && end.fields.contains { $0.isText } }
}
