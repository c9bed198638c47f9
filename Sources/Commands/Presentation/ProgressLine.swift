import Migration
import Platform
import SupportBundle
import SystemPackage

enum ProgressUnit {
  case bytes

  /// Items, by their plural noun.
  case things(String)

  /// Fractions without a unit or rate.
  case shares

  func words(perSecond rate: Double) -> String? {
    switch self {
    case .bytes: rate >= 1 ? "\(readableSize(Int64(min(rate, 1e15))))/s" : nil
    case .things(let noun): rate >= 1 ? "\(grouped(Int64(min(rate, 1e15)))) \(noun)/s" : nil
    case .shares: nil
    }
  }
}

/// A progress line on standard error with rate and remaining time.
///
/// Hidden without a terminal and with `--quiet`.
final class ProgressLine: Sendable {
  private let isShown = Terminal.standardError.isInteractive && !TextStyle.current.isQuiet
  private let state = Mutex(State())

  private struct State {
    var words = ""
    var percent = -1
    var start = ContinuousClock.now
    var shown = ContinuousClock.now
    var first: Int64 = 0
  }

  deinit { clear() }

  func show(
    _ words: String, _ done: Int64, of total: Int64, _ unit: ProgressUnit = .shares, secondsLeft told: Double? = nil
  ) {
    guard isShown, total > 0 else { return }
    let share = min(1, max(0, Double(done) / Double(total)))
    let percent = Int(share * 100)
    let now = ContinuousClock.now
    let begun = state.withLock { state -> (elapsed: Duration, first: Int64)? in
      if state.words != words { state = State(words: words, percent: -1, start: now, shown: now, first: done) }
      guard state.percent != percent || now - state.shown > .milliseconds(500) else { return nil }
      (state.percent, state.shown) = (percent, now)
      return (now - state.start, state.first)
    }
    guard let begun else { return }
    let columns = (Terminal.standardError.width ?? 80) - 1
    let pace = Pace(done: done - begun.first, left: total - done, elapsed: begun.elapsed, secondsLeft: told)
    let text = Self.text(words, share, pace, unit, columns: columns)
    Terminal.standardError.writeLive(text)
  }

  func show(_ words: String) {
    guard isShown else { return }
    state.withLock { $0 = State(words: words) }
    Terminal.standardError.writeLive(String(words.prefix((Terminal.standardError.width ?? 80) - 1)))
  }

  struct Pace {
    var done: Int64
    var left: Int64
    var elapsed: Duration
    var secondsLeft: Double?

    var speed: Double? {
      let seconds = elapsed / .seconds(1)
      return seconds > 0.25 && done > 0 ? Double(done) / seconds : nil
    }

    var remaining: Double? {
      if let secondsLeft { return secondsLeft }
      guard let speed, left > 0, elapsed > .seconds(1) else { return nil }
      return Double(left) / speed
    }
  }

  /// Fits the line into columns: the bar is shortened first, then the rate.
  static func text(_ words: String, _ share: Double, _ pace: Pace, _ unit: ProgressUnit, columns: Int) -> String {
    let percent = " \(Int(share * 100)) %"
    var rate = pace.speed.flatMap { unit.words(perSecond: $0) }.map { ", \($0)" } ?? ""
    let time = pace.remaining.map { ", about \(timeLeft($0)) left" } ?? ""
    func room() -> Int { columns - words.count - percent.count - rate.count - time.count - 1 }
    if room() < 10 { rate = "" }
    let length = min(30, max(0, room()))
    guard length >= 5 else { return String((words + percent + time).prefix(max(columns, 0))) }
    let filled = Int(share * Double(length))
    let bar = String(repeating: "█", count: filled) + String(repeating: "░", count: length - filled)
    return "\(words) \(bar)\(percent)\(rate)\(time)"
  }

  static func timeLeft(_ seconds: Double) -> String {
    let whole = Int(min(max(seconds.rounded(.up), 1), 359_999))
    if whole < 90 { return "\(whole) s" }
    if whole < 5_400 { return "\((whole + 59) / 60) min" }
    return "\(whole / 3_600) h \(whole / 60 % 60) min"
  }

  func clear() {
    state.withLock { $0 = State() }
    if isShown { Terminal.standardError.clearLive() }
  }

  func show(_ progress: SendingProgress) {
    switch progress.phase {
    case .asking: show("Asking the receiver …")
    case .finishing: show("Asking for the receipt …")
    case .pausing(let span, let code):
      show("Waiting \(Self.timeLeft(span / .seconds(1))) before the next try [\(printable(code))] …")
    case .sending: show("Sending", progress.done, of: progress.total, .bytes)
    }
  }
}

/// A migration step's progress, by its new file's growth: SQLite works on whole tables and does not report progress.
final class StepProgress: Sendable {
  private let folder: FilePath

  /// The store's size, about that of each new file.
  private let total: Int64

  private let line = ProgressLine()
  private let step = Mutex("")

  /// - Parameter output: the result's path, if not the store's.
  init(of store: FilePath, to output: FilePath?) {
    let system = FileSystem()
    // The migration reports a missing store.
    let place = (try? StoreFileSet.locate(output ?? store, in: system).main) ?? output ?? store
    folder = place.hiddenSibling(suffix: ".migrating")
    let members = try? StoreFileSet.locate(store, in: system).members(in: system)
    total = members?.reduce(0) { $0 + $1.status.size } ?? 0
  }

  /// Shows the steps of a migration or repair, which Ctrl-C ends.
  ///
  /// - Parameter words: the words for a step by name, number and count.
  func watch(_ options: inout Migrator.Options, _ words: @escaping @Sendable (String, Int, Int) -> String) {
    Interruption.listen()
    options.progress = { step, number, count in
      self.begin(words(step, number, count))
      return !Interruption.isRequested
    }
    options.isCancelled = {
      self.look()
      return Interruption.isRequested
    }
  }

  func begin(_ words: String) {
    step.withLock { $0 = words }
    line.show(words, 0, of: max(total, 1))
  }

  func look() {
    let words = step.withLock { $0 }
    guard !words.isEmpty, total > 0 else { return }
    // Several steps may share the first one's file; between steps it is missing.
    let system = FileSystem()
    guard let names = try? system.entries(of: folder),
      let name = names.first(where: { $0.string.hasSuffix(".sqlite.unfinished") }),
      let size = try? system.status(of: folder.appending(name))?.size
    else { return }
    // The final size is unknown; the next step's start completes the bar.
    line.show(words, min(size, total - total / 100), of: total, .bytes)
  }

  func clear() { line.clear() }
}
