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
