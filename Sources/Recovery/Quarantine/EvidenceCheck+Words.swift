package import StoreFiles

extension EvidenceCheck {
  /// What to do where files are not as they were quarantined; nil where nothing was found.
  package func hint(on store: QuarantinedStore) -> String? {
    if isMissing {
      return "Put its files back from a copy, under their names; what is left of it is removed with: "
        + "lazaret quarantine discard \(shellQuoted(store.files.main))"
    }
    if differences.isEmpty { return nil }
    return checked == .size
      ? "Compare the contents with: lazaret quarantine show \(shellQuoted(store.files.main))"
      : "Where a copy of the files is as the receipt says, put that in their place."
  }

  /// What was compared and found, in a sentence.
  package var sentence: String {
    if isMissing { return "Its files are missing; only its receipt is left." }
    if let words { return words }
    return checked == .size
      ? "Its files are there with the sizes that they had." : "Its files are as they were quarantined."
  }

  /// What programs are told of it, with what to do.
  package func payload(on store: QuarantinedStore) -> JSON.Object { JSON.Object(self, ["hint": hint(on: store)]) }
}

extension Receipt.Salvage.Evidence {
  /// Which files were not as they were quarantined when the result was made, in a sentence; nil for none, or where that was not
  /// noted.
  package var changeWords: String? {
    EvidenceCheck.words(changes ?? []).map {
      "When it was salvaged, the files were no longer what was quarantined: \($0)."
    }
  }
}
