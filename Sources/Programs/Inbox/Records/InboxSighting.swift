internal import StoreFiles

/// That a damage was seen; it stays when the bundle is discarded.
package struct InboxSighting: Sendable, Hashable {
  /// The bundle that it was seen in.
  package var bundle: String

  /// What tells one store from another: the same store that is sent again, at another level, is one sighting.
  package var store: String

  /// The mark of the damage.
  package var fingerprint: DamageFingerprint

  /// The version of the app; nil where the bundle does not say.
  package var appVersion: String?

  /// When the bundle arrived.
  package var date: String

  /// A damage that was seen.
  package init(bundle: String, store: String, fingerprint: DamageFingerprint, appVersion: String?, date: String) {
    self.bundle = bundle
    self.store = store
    self.fingerprint = fingerprint
    self.appVersion = appVersion
    self.date = date
  }
}
