package import Examination
package import SupportBundle

/// What goes into a bundle.
package struct ExportOptions: Sendable {
  /// How much of the store.
  package var level: BundleLevel

  /// The identifier of the app, such as `com.example.Garage`; nil where it is not known.
  package var app: String?

  /// The app's own version, as its makers write it.
  package var appVersion: String?

  /// The app's model; what the store says of itself if nil.
  package var model: AppModel?

  /// The attributes whose values stay as they are in a scrubbed store: `Entity.attribute`, or `table.column`.
  package var keeping: Set<String>

  /// The attributes whose values are overwritten with filling in a scrubbed store.
  package var dropping: Set<String>

  /// Whether the scrubbing key of the home is used, so that bundles can be compared with each other; else each has one of its
  /// own, which is thrown away.
  package var usesSameKey: Bool

  /// A scrubbed store, unless told otherwise.
  package init(
    level: BundleLevel = .scrubbed, app: String? = nil, appVersion: String? = nil, model: AppModel? = nil,
    keeping: Set<String> = [], dropping: Set<String> = [], usesSameKey: Bool = false
  ) {
    self.level = level
    self.app = app
    self.appVersion = appVersion
    self.model = model
    self.keeping = keeping
    self.dropping = dropping
    self.usesSameKey = usesSameKey
  }
}
