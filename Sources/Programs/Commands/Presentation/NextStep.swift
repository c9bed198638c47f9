import StoreCoordination

/// The command that comes next for a store that was examined, with its paths; nil where none helps.
struct NextStep {
  private let store: String
  private let model: String
  private let rescued: String

  /// - Parameter model: the app's model; nil where none was given, or which one of several.
  init(for store: FilePath, model: FilePath?) {
    self.store = shellQuoted(store)
    self.model = model.map { " --model \(shellQuoted($0))" } ?? ""
    let name = store.stem.map { "\($0).rescued.sqlite" } ?? "Rescued.sqlite"
    rescued = shellQuoted(store.removingLastComponent().appending(name))
  }

  /// The command by what was found.
  func command(after examination: Examination) -> String? {
    switch examination.verdict {
    case .damaged where examination.isForeignFile || examination.health.fileKind == .empty: nil
    case .damaged: model.isEmpty ? salvage : "lazaret open \(store)\(model)"
    case .outdated: model.isEmpty ? nil : "lazaret migrate \(store)\(model)"
    case .repairable:
      examination.isBeyondRepair ? salvage : "lazaret repair \(store)\(model.isEmpty ? " --model \(store)" : model)"
    case .incompatible: examination.isForeign && !model.isEmpty ? replacing : nil
    case .compatible, .missing, .unavailable: nil
    }
  }

  /// What to say where `open` has left a store in its place, for the end of the hint; empty for nothing.
  func advice(after kind: LazaretErrorKind) -> String {
    switch kind {
    case .foreignStore, .foreignFile:
      " To have it quarantined and a new store made in its place: \(replacing)"
    case .damaged, .incompatible:
      " To have it quarantined and salvaged: lazaret open \(store)\(model) --on-damage salvage"
    case .migrationFailed, .repairable, .unavailable, .creationFailed, .salvageFailed, .salvagePending, .cancelled: ""
    }
  }

  private var salvage: String { "lazaret salvage \(store)\(model) -o \(rescued)" }
  private var replacing: String { "lazaret open \(store)\(model) --replace-foreign" }
}
